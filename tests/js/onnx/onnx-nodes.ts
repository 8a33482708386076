/** Models of one node: ours, and ONNX Runtime Web's. */
import type { DataArray, Gemm } from 'wgemm';
import { loadModel, type ModelResult, type OnnxDType } from 'wgemm/onnx';
import { type AttributeSpec, encodeGraph } from '../../peers/onnx-model.mjs';
import type { Ort } from '../../peers/onnx.mjs';
import { arrayClasses, fromBits, isFloat } from '../support/dtypes.js';
import type { Random } from '../support/random.js';

/** A tensor of any type of a model. */
export interface Input {
  readonly dtype: OnnxDType;
  readonly shape: readonly number[];
  readonly data: DataArray;
}

export interface NodeCase {
  op: string;
  domain?: string;
  opset: number;
  inputs: readonly (Input | null)[];
  attributes?: Record<string, AttributeSpec | undefined>;
  /** Default: 1. */
  outputs?: number;
}

const classOf = (dtype: OnnxDType) => (dtype === 'bool' ? Uint8Array : arrayClasses[dtype]);

export function tensor(
  dtype: OnnxDType,
  shape: readonly number[],
  values: readonly (number | bigint)[],
): Input {
  const data = new (classOf(dtype))(values.length);
  const isBig = dtype.endsWith('int64');
  (data as Float32Array).set(
    values.map((value) => (isBig ? BigInt(value) : Number(value))) as number[],
  );
  return { dtype, shape, data };
}

export const ints = (values: readonly (number | bigint)[], dtype: 'int64' | 'int32' = 'int64') =>
  tensor(dtype, [values.length], values);

export function count(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Random elements: integers over the whole range, and floating point around 0. */
export function randomTensor(
  random: Random,
  dtype: OnnxDType,
  shape: readonly number[],
  most = 4,
): Input {
  const data = new (classOf(dtype))(count(shape));
  if (dtype === 'bool')
    (data as Uint8Array).forEach((_, i) => ((data as Uint8Array)[i] = random.between(0, 1)));
  else random.fill(data, dtype);
  if (dtype.includes('float') && dtype !== 'bfloat16')
    for (let i = 0; i < data.length; ++i)
      (data as Float32Array)[i] = ((data as Float32Array)[i] as number) * most;
  return { dtype, shape, data };
}

const nameOf = (index: number, letter: string) => `${letter}${index}`;

function encoded(
  { op, domain = '', opset, inputs, attributes = {}, outputs = 1 }: NodeCase,
  dtypes: readonly (string | undefined)[],
) {
  const names = inputs.map((input, i) => (input ? nameOf(i, 'x') : null));
  return encodeGraph({
    opsets: { '': opset, ...(domain !== '' && { [domain]: 1 }) },
    irVersion: 8,
    nodes: [
      {
        op,
        domain,
        name: 'the node',
        inputs: names,
        outputs: Array.from({ length: outputs }, (_, i) => nameOf(i, 'y')),
        attributes: attributes as Record<string, AttributeSpec>,
      },
    ],
    inputs: inputs.flatMap((input, i) =>
      input ? [{ name: nameOf(i, 'x'), dtype: input.dtype, shape: input.shape }] : [],
    ),
    outputs: Array.from({ length: outputs }, (_, i) => ({
      name: nameOf(i, 'y'),
      dtype: dtypes[i] ?? 'none',
    })),
  });
}

/** The results of a node. */
export async function runNode(wg: Gemm, node: NodeCase): Promise<ModelResult[]> {
  const model = await loadModel(encoded(node, []), { wg });
  try {
    const feeds = Object.fromEntries(
      node.inputs.flatMap((input, i) => (input ? [[nameOf(i, 'x'), input]] : [])),
    );
    const results = await model.run(feeds);
    return Array.from(
      { length: node.outputs ?? 1 },
      (_, i) => results[nameOf(i, 'y')] as ModelResult,
    );
  } finally {
    model.dispose();
  }
}

/** The same of the runtime. The results must be of these types. */
export async function runInOrt(
  ort: Ort,
  node: NodeCase,
  dtypes: readonly string[],
): Promise<Input[]> {
  const session = await ort.createSession(encoded(node, dtypes));
  const feeds = Object.fromEntries(
    node.inputs.flatMap((input, i) =>
      input ? [[nameOf(i, 'x'), ort.tensor(input as never)]] : [],
    ),
  );
  const results = (await session.run(feeds)) as Record<
    string,
    { type: string; dims: number[]; data: DataArray }
  >;
  return Array.from({ length: node.outputs ?? 1 }, (_, i) => {
    const { type, dims, data } = results[nameOf(i, 'y')] as (typeof results)[string];
    return { dtype: type as OnnxDType, shape: dims, data };
  });
}

/** Elements as numbers. */
export function valuesOf({ dtype, data }: Input): (number | bigint)[] {
  return Array.from(data as ArrayLike<number | bigint>, (value) =>
    data instanceof Uint16Array && dtype !== 'bool' && isFloat(dtype)
      ? fromBits(dtype, value as number)
      : value,
  );
}

/** The error that rejects a promise. */
export function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('there was no error');
    },
    (error: unknown) => error,
  );
}
