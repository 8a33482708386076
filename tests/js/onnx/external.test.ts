/** External data in files that are read by ranges: weights are packed while they are read. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { type LoadOptions, loadModel, type ModelResult, readOnnx } from 'wgemm/onnx';
import { encodeGraph, type NodeSpec, type TensorSpec } from '../../peers/onnx-model.mjs';
import { expectError, rejected } from '../support/errors.js';
import { Random } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ determinism: 'strict', models: true });
});
afterAll(() => {
  wg.dispose();
});

const location = 'weights.bin';

/** Tensors in a file, at odd places. The elements are finite. */
class File {
  bytes = new Uint8Array();

  add(name: string, dtype: string, shape: readonly number[], seed = 1): TensorSpec {
    const size = shape.reduce((product, n) => product * n, 1);
    const wide = new Random(seed).fill(new Float32Array(size));
    const codes = Uint16Array.from(wide, (x) => 0x3c00 + Math.round(x * 64));
    const data = { float32: wide, float64: Float64Array.from(wide) }[dtype] ?? codes;
    const offset = this.bytes.length + 3;
    const bytes = new Uint8Array(offset + data.byteLength);
    bytes.set(this.bytes);
    bytes.set(new Uint8Array(data.buffer), offset);
    this.bytes = bytes;
    return { name, dtype, shape, external: { location, offset, length: data.byteLength } };
  }

  /** The option of today: a function that returns a tensor. */
  readonly whole = ({ offset, length }: { offset: number; length: number }) =>
    this.bytes.slice(offset, offset + length);

  /** A function that reads ranges, and the lengths that it was asked for. */
  ranges(): { lengths: number[]; read: (offset: number, length: number) => Uint8Array } {
    const lengths: number[] = [];
    const read = (offset: number, length: number) => {
      lengths.push(length);
      return this.bytes.slice(offset, offset + length);
    };
    return { lengths, read };
  }
}

const node = (op: string, inputs: string[], output: string, attributes = {}): NodeSpec => ({
  op,
  inputs,
  outputs: [output],
  attributes,
});

const modelOf = (
  nodes: NodeSpec[],
  initializers: TensorSpec[],
  x: { dtype: string; shape: number[] },
  outputs = ['y'],
): Uint8Array =>
  encodeGraph({
    nodes,
    initializers,
    inputs: [{ name: 'x', ...x }],
    outputs: outputs.map((name) => ({ name, dtype: 'none' })),
  });

async function resultsOf(
  bytes: Uint8Array,
  externalData: LoadOptions['externalData'],
  dtype: string,
  shape: number[],
): Promise<ModelResult[]> {
  const model = await loadModel(bytes, { wg, externalData });
  const size = shape.reduce((product, n) => product * n, 1);
  const values = new Random(9).fill(new Float32Array(size));
  const codes = Uint16Array.from(values, (x) => 0x3c00 + Math.round(x * 64));
  const data = { float32: values, float64: Float64Array.from(values) }[dtype] ?? codes;
  const results = await model.run({ x: { data, shape, dtype } as never });
  model.dispose();
  return Object.values(results);
}

const megabyte = 2 ** 20;

/** Loads a model in both ways, and returns the ranges that were read. */
async function compare(
  bytes: Uint8Array,
  file: File,
  dtype: string,
  shape: number[],
): Promise<number[]> {
  const before = wg.memory().inUse;
  const wanted = await resultsOf(bytes, file.whole, dtype, shape);
  const { lengths, read } = file.ranges();
  for (const source of [read, file.bytes, new Blob([file.bytes])])
    expect(await resultsOf(bytes, { [location]: source }, dtype, shape)).toEqual(wanted);
  expect(wg.memory().inUse).toBe(before);
  return lengths;
}

/** What is read in parts of whole rows, about a megabyte each. */
function expectParts(lengths: number[], bytes: number, row: number, step: number): void {
  expect(lengths.reduce((sum, n) => sum + n, 0)).toBe(bytes);
  expect(lengths.length).toBeGreaterThanOrEqual(Math.floor(bytes / megabyte));
  for (const length of lengths) expect(length).toBeLessThanOrEqual(Math.max(megabyte, row * step));
  for (const length of lengths.slice(0, -1)) expect(length % (row * step)).toBe(0);
}

describe('weights are packed while they are read, with the same bits', () => {
  it.each(['float32', 'float64', 'float16', 'bfloat16'])('of %s', async (dtype) => {
    const bytesOf = { float32: 4, float64: 8 }[dtype] ?? 2;
    const [k, n] = [Math.floor((515 * 4) / bytesOf), 1037];
    for (const trans of [false, true]) {
      const file = new File();
      const w = file.add('w', dtype, trans ? [n, k] : [k, n]);
      const multiply = trans
        ? node('Gemm', ['x', 'w'], 'y', { transB: 1 })
        : node('MatMul', ['x', 'w'], 'y');
      const bytes = modelOf([multiply], [w], { dtype, shape: [3, k] });
      const row = (trans ? k : n) * bytesOf;
      expectParts(await compare(bytes, file, dtype, [3, k]), k * n * bytesOf, row, trans ? 8 : 1);
    }
  });

  it('of any number of rows, also none', async () => {
    for (const shape of [
      [22, 17_000], // the first part has 15 rows, and 15 / 22 * 22 is not exact
      [1, 300_000],
      [300_000, 1],
      [5, 0],
      [1, 1],
    ]) {
      const file = new File();
      const [k] = shape as [number];
      const bytes = modelOf([node('MatMul', ['x', 'w'], 'y')], [file.add('w', 'float32', shape)], {
        dtype: 'float32',
        shape: [2, k],
      });
      await compare(bytes, file, 'float32', [2, k]);
    }
  });

  it('if several nodes share them, also in the branches of an If', async () => {
    const file = new File();
    const [w, v] = [file.add('w', 'float32', [64, 64]), file.add('v', 'float32', [64, 64], 2)];
    const branch = (name: string) => ({
      graph: {
        nodes: [node('MatMul', ['h', name], `${name} y`)],
        outputs: [{ name: `${name} y`, dtype: 'float32' }],
      },
    });
    const nodes = [
      node('MatMul', ['x', 'w'], 'g'),
      node('MatMul', ['g', 'w'], 'h'),
      node('ReduceSum', ['h'], 's', { keepdims: 0 }),
      node('Greater', ['s', 'zero'], 'c'),
      node('If', ['c'], 'y', { then_branch: branch('w'), else_branch: branch('v') }),
    ];
    const zero = { name: 'zero', dtype: 'float32', shape: [], data: Float32Array.of(0) };
    const bytes = modelOf(nodes, [w, v, zero], { dtype: 'float32', shape: [2, 64] });
    const lengths = await compare(bytes, file, 'float32', [2, 64]);
    expect(lengths).toEqual([64 * 64 * 4, 64 * 64 * 4]);
  });
});

describe('weights that something else reads, too, are read as a whole', () => {
  const [k, n] = [520, 1032];
  const size = k * n * 4;
  const shape = [2, k];
  const x = { dtype: 'float32', shape };
  const cases: [name: string, nodes: (file: File) => [NodeSpec[], TensorSpec[], string[]]][] = [
    [
      'an Add',
      (file) => [
        [node('MatMul', ['x', 'w'], 'y'), node('Add', ['w', 'w'], 'z')],
        [file.add('w', 'float32', [k, n])],
        ['y', 'z'],
      ],
    ],
    [
      'the result',
      (file) => [[node('MatMul', ['x', 'w'], 'y')], [file.add('w', 'float32', [k, n])], ['y', 'w']],
    ],
    [
      'a Gemm with another transB',
      (file) => [
        [node('MatMul', ['x', 'w'], 'h'), node('Gemm', ['h', 'w'], 'y', { transB: 1 })],
        [file.add('w', 'float32', [k, n])],
        ['y'],
      ],
    ],
    [
      'a BatchNormalization, which is folded',
      (file) => [
        [node('Gemm', ['x', 'w'], 'h'), node('BatchNormalization', ['h', 'a', 'b', 'c', 'd'], 'y')],
        [
          file.add('w', 'float32', [k, n]),
          ...['a', 'b', 'c', 'd'].map((name, seed) => ({
            name,
            dtype: 'float32',
            shape: [n],
            data: new Random(seed).fill(new Float32Array(n)).map((each) => each * each + 1),
          })),
        ] as TensorSpec[],
        ['y'],
      ],
    ],
    [
      'a Transpose',
      (file) => [
        [node('Transpose', ['w'], 't'), node('MatMul', ['x', 't'], 'y')],
        [file.add('w', 'float32', [n, k])],
        ['y'],
      ],
    ],
    [
      'a stack',
      (file) => [[node('MatMul', ['x', 'w'], 'y')], [file.add('w', 'float32', [1, k, n])], ['y']],
    ],
    [
      'a product with it as A',
      (file) => [
        [node('MatMul', ['x', 'w'], 'h'), node('MatMul', ['w', 'v'], 'y')],
        [file.add('w', 'float32', [k, n]), file.add('v', 'float32', [n, 3])],
        ['h', 'y'],
      ],
    ],
  ];
  it.each(cases)('%s', async (_, make) => {
    const file = new File();
    const [nodes, initializers, outputs] = make(file);
    const bytes = modelOf(nodes, initializers, x, outputs);
    expect(await compare(bytes, file, 'float32', shape)).toContain(size);
  });
});

it('readOnnx reads whole tensors of such files', async () => {
  const file = new File();
  const w = file.add('w', 'float32', [3, 4]);
  const bytes = modelOf([node('MatMul', ['x', 'w'], 'y')], [w], {
    dtype: 'float32',
    shape: [2, 3],
  });
  const { read } = file.ranges();
  const [whole, ranges] = [
    await readOnnx(bytes, { externalData: file.whole }),
    await readOnnx(bytes, { externalData: { [location]: read } }),
  ];
  expect(ranges.graph.initializers.get('w')).toEqual(whole.graph.initializers.get('w'));
});

it('progress counts what is read, and ends with 1', async () => {
  const file = new File();
  const w = file.add('w', 'float32', [1024, 1024]);
  const bias = { name: 'c', dtype: 'float32', shape: [1024], data: new Float32Array(1024) };
  const bytes = modelOf([node('Gemm', ['x', 'w', 'c'], 'y')], [w, bias], {
    dtype: 'float32',
    shape: [1, 1024],
  });
  const told: number[] = [];
  const progress = (done: number) => void told.push(done);
  const externalData = { [location]: file.bytes };
  const model = await loadModel(bytes, { wg, externalData, progress });
  model.dispose();
  expect(told.length).toBeGreaterThan(4);
  expect(told).toEqual([...told].sort((a, b) => a - b));
  expect(told[0]).toBeCloseTo(0.25, 2);
  expect(told.at(-1)).toBe(1);
  const failure = new Error('enough');
  const before = wg.memory().inUse;
  const stop = (done: number) => {
    if (done > 0.4) throw failure;
  };
  expect(await rejected(loadModel(bytes, { wg, externalData, progress: stop }))).toBe(failure);
  expect(wg.memory().inUse).toBe(before);
});

describe('is refused, and the memory is free then', () => {
  const size = 1024 * 1024;
  const specOf = () => {
    const file = new File();
    const w = file.add('w', 'float32', [1024, 1024]);
    const x = { dtype: 'float32', shape: [1, 1024] };
    return { file, bytes: modelOf([node('MatMul', ['x', 'w'], 'y')], [w], x) };
  };
  const refusal = async (bytes: Uint8Array, externalData: unknown) => {
    const before = wg.memory().inUse;
    const error = await rejected(loadModel(bytes, { wg, externalData } as never));
    expect(wg.memory().inUse).toBe(before);
    return error;
  };
  const wrong = { code: 'ARGUMENT', op: 'readOnnx', argument: 'externalData' } as const;

  it('a file without a source', async () => {
    const { bytes, file } = specOf();
    for (const other of [
      {},
      { 'other.bin': file.bytes },
      Object.create({ [location]: file.bytes }),
    ])
      expectError(await refusal(bytes, other), { ...wrong, says: ['"weights.bin"'] });
  });

  it('a value that is not a source', async () => {
    const { bytes } = specOf();
    for (const other of [7, null, {}, undefined])
      expectError(await refusal(bytes, { [location]: other }), {
        code: 'ARGUMENT',
        op: 'readOnnx',
        argument: 'source',
        says: ['it must be a Uint8Array'],
      });
    for (const other of [7, null, 'x', [], new Uint8Array(3)])
      expectError(await refusal(bytes, other), {
        ...wrong,
        op: 'loadModel',
        says: ['it must be a function, or an object of files by location'],
      });
    for (const other of [new Map(), new Blob([]), new ArrayBuffer(8)]) {
      const rule = 'it must be a function, or an object of files by location';
      const says = [`externalData is ${other.constructor.name}; ${rule}`];
      expectError(await refusal(bytes, other), { ...wrong, op: 'loadModel', says });
    }
  });

  it('a file that ends early', async () => {
    const { bytes, file } = specOf();
    for (const end of [0, 3, size, file.bytes.length - 1]) {
      const error = await refusal(bytes, { [location]: file.bytes.subarray(0, end) });
      expectError(error, { code: 'ARGUMENT', op: 'loadModel', argument: 'y', says: ['ends at'] });
      expect(String(error)).not.toContain('readOnnx');
    }
  });

  it('a source that fails, at any part', async () => {
    const { bytes, file } = specOf();
    const failure = new Error('404');
    for (const at of [0, 1, 3]) {
      let count = 0;
      const read = (offset: number, length: number) => {
        if (count++ === at) throw failure;
        return file.bytes.subarray(offset, offset + length);
      };
      expect(await refusal(bytes, { [location]: read })).toBe(failure);
    }
  });

  it('weights that are larger than the memory', async () => {
    const { bytes, file } = specOf();
    const small = await createGemm({ models: true, maxMemory: 3_000_000 });
    const { lengths, read } = file.ranges();
    const externalData = { [location]: read };
    expectError(await rejected(loadModel(bytes, { wg: small, externalData })), {
      code: 'OUT_OF_MEMORY',
      op: 'loadModel',
      argument: 'y',
      says: ['no memory for weights of 1 x 1024 x 1024 elements'],
    });
    expect(lengths).toEqual([]);
    small.dispose();
  });

  it('an instance that ends', async () => {
    const { bytes, file } = specOf();
    const other = await createGemm({ models: true });
    const read = (offset: number, length: number) => {
      if (offset > size) other.dispose();
      return file.bytes.subarray(offset, offset + length);
    };
    const error = await rejected(
      loadModel(bytes, { wg: other, externalData: { [location]: read } }),
    );
    expectError(error, { code: 'DISPOSED', op: 'loadModel', argument: 'y', says: ['disposed'] });
  });
});
