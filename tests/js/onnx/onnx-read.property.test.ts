/** Random models are read as they were written. Changed bytes give a model or a GemmError. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { GemmError } from 'wgemm';
import { readOnnx } from 'wgemm/onnx';
import {
  type AttributeSpec,
  encodeGraph,
  type GraphSpec,
  type NodeSpec,
  type TensorSpec,
  type ValueSpec,
} from '../../peers/onnx-model.mjs';
import { seed } from '../support/arbitraries.js';
import { arrayClasses } from '../support/dtypes.js';
import { count, Random } from '../support/tensors.js';

const name = fc.oneof(
  fc.constantFrom(
    'x',
    'y',
    '__proto__',
    'constructor',
    'toString',
    '0',
    'ä',
    'a name/of.14:letters',
  ),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
);
const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 });
const dtype = fc.constantFrom(
  ...(['float32', 'float64', 'bfloat16', 'int32', 'uint32', 'int64', 'uint64'] as const),
  ...(['int8', 'uint8'] as const),
);
const tensor = fc
  .record({ name, dtype, shape, typed: fc.boolean(), numbers: fc.integer() })
  .map(({ numbers, ...spec }): Required<Omit<TensorSpec, 'external'>> => {
    const data = new arrayClasses[spec.dtype](count(spec.shape));
    return { ...spec, data: new Random(numbers).fill(data, spec.dtype) };
  });
const int = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
);
const float = fc.float({ noNaN: true });
const attribute: fc.Arbitrary<AttributeSpec> = fc.oneof(
  int,
  fc.string({ unit: 'grapheme' }),
  fc.array(int),
  fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1 }),
  fc.record({ float }),
  fc.record({ floats: fc.array(float) }),
  fc.record({ tensor }),
);
const optional = fc.oneof(
  { weight: 4, arbitrary: name },
  { weight: 1, arbitrary: fc.constant('') },
);
const node: fc.Arbitrary<NodeSpec> = fc.record({
  op: name,
  domain: fc.constantFrom('', 'com.microsoft'),
  name: optional,
  inputs: fc.array(optional, { maxLength: 4 }),
  outputs: fc.array(optional, { maxLength: 3 }),
  attributes: fc.dictionary(name, attribute, { maxKeys: 4, noNullPrototype: false }),
});
const size = fc.oneof(fc.nat(), name, fc.constant(undefined));
const value: fc.Arbitrary<ValueSpec> = fc.record(
  {
    name,
    dtype: fc.oneof(dtype, fc.constantFrom('bool', 'string', 'int4')),
    shape: fc.array(size),
  },
  { requiredKeys: ['name', 'dtype'] },
);
const graph: fc.Arbitrary<GraphSpec> = fc.record({
  name: optional,
  nodes: fc.array(node, { maxLength: 6 }),
  inputs: fc.array(value, { maxLength: 3 }),
  outputs: fc.array(value, { maxLength: 3 }),
  initializers: fc.uniqueArray(tensor, { maxLength: 4, selector: ({ name }) => name }),
});

const narrowed = (whole: number | bigint) =>
  Number.isSafeInteger(Number(whole)) ? Number(whole) : whole;

function wantedTensor({ name = '', dtype, shape, data }: TensorSpec) {
  return { name, dtype, shape, data };
}

function wantedAttribute(value: AttributeSpec): unknown {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object') return narrowed(value);
  if ('float' in value) return value.float;
  if ('floats' in value) return value.floats;
  if ('tensor' in value) return wantedTensor(value.tensor);
  if (Array.isArray(value))
    return (value as (number | bigint | string)[]).map((item) =>
      typeof item === 'string' ? item : narrowed(item),
    );
  return expect.fail('no graphs here');
}

function wantedValue({ name, dtype, shape }: ValueSpec) {
  return { name, dtype, shape };
}

it('reads what was written', async () => {
  await fc.assert(
    fc.asyncProperty(graph, fc.integer({ min: 0, max: 8 }), async (spec, padding) => {
      const encoded = encodeGraph(spec);
      const bytes = new Uint8Array(encoded.length + padding).subarray(padding);
      bytes.set(encoded);
      const found = await readOnnx(bytes);
      expect(found.graph).toEqual({
        name: spec.name,
        nodes: spec.nodes.map(({ attributes = {}, ...node }) => ({
          ...node,
          attributes: new Map(
            Object.entries(attributes).map(([name, value]) => [name, wantedAttribute(value)]),
          ),
        })),
        inputs: spec.inputs?.map(wantedValue),
        outputs: spec.outputs?.map(wantedValue),
        values: [],
        initializers: new Map(
          spec.initializers?.map((tensor) => [tensor.name, wantedTensor(tensor)]),
        ),
      });
    }),
    { seed, numRuns: 300 },
  );
});

it('refuses changed bytes by a GemmError, or reads them', async () => {
  const changes = fc.array(
    fc.record({
      at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      removed: fc.integer({ min: 0, max: 20 }),
      added: fc.uint8Array({ maxLength: 12 }),
    }),
    { minLength: 1, maxLength: 4 },
  );
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(graph, changes, async (spec, changes) => {
      let bytes = encodeGraph(spec);
      for (const { at, removed, added } of changes) {
        const start = Math.floor(at * bytes.length);
        bytes = Uint8Array.of(
          ...bytes.subarray(0, start),
          ...added,
          ...bytes.subarray(start + removed),
        );
      }
      try {
        await readOnnx(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(GemmError);
        const { op, message } = error as GemmError;
        expect(op).toBe('readOnnx');
        expect(message).toMatch(/^readOnnx: .*\w{3}/);
        ++refused;
      }
    }),
    { seed, numRuns: 1000 },
  );
  expect(refused).toBeGreaterThan(100);
});
