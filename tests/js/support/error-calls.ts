/**
 * One good call per operation, and the handles of an instance: what the rows of error-cases.ts
 * spoil.
 */
import type { DataArray, DType, Gemm } from 'wgemm';
import { packFrom } from 'wgemm/weights';
import type { WorkerGemm } from 'wgemm/worker';
import { count, float32, int32, int8, tensor, uint8 } from './tensors.js';

/** The arguments of a call by name, of any kind, as JavaScript may pass them. */
export type Named = Record<string, unknown>;

export type Instance = Gemm | WorkerGemm;

/** Makes float32 of one value. */
export const floats = (shape: readonly number[], value = 0.5) =>
  float32(shape, ...Array<number>(count(shape)).fill(value));
/** Makes a tensor of small whole numbers. */
export const ofType = (dtype: DType, ...shape: number[]) =>
  tensor(
    dtype,
    shape,
    Array.from({ length: count(shape) }, (_, i) =>
      dtype.endsWith('64') && dtype !== 'float64' ? BigInt(i + 1) : i + 1,
    ),
  );

/** A proxy that has been revoked. */
export function revoked(target: object = {}): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** An array that states any length. */
export const ofLength = (array: number[], length: unknown) =>
  new Proxy(array, {
    get: (target, key) => (key === 'length' ? length : (Reflect.get(target, key) as unknown)),
  });

export type ArrayClass = new (length: number) => DataArray;

/** An array whose buffer has been transferred. */
export function detached(Class: ArrayClass): DataArray {
  const array = new Class(4);
  structuredClone(array.buffer, { transfer: [array.buffer as ArrayBuffer] });
  return array;
}

/** A tensor (2, 2) of an array of this class, with more properties. */
export const square = (Class: ArrayClass, more: object = {}) => ({
  data: new Class(4),
  shape: [2, 2],
  ...more,
});

const bytesOfB = () => int8([3, 2], 1, -2, 3, -4, 5, -128);
const bytesOfA = () => uint8([2, 3], 1, 2, 3, 4, 5, 255);

/** Two columns of 20 codes in two blocks, 9 and 7, with zero points 1 and 0. */
export const codes = () => ({
  data: uint8([2, 2, 8], ...Array<number>(32).fill(0x79)),
  scales: floats([2, 2]),
  zeroPoints: uint8([2, 1], 1, 1),
  k: 20,
  n: 2,
  bits: 4,
  blockSize: 16,
});

/** The bytes of weights of shape (2, 2), as `serialize()` wrote them. */
export const goodBytes = () =>
  Uint8Array.from(
    (
      '7767656d6d2d7077 0100000001000000 ec9877b4d9dc3ce4 67656d6d00000000 666c6f6174333200 ' +
      '0800010008000400 0200000000000000 0200000000000000 0200000000000000 0000000000000000 ' +
      '0000000000000000 0000000000000000 0000000000000000 0000803f00000040 0000000000000000 ' +
      '0000000000000000 0000000000000000 0000404000008040 0000000000000000 0000000000000000 ' +
      '0000000000000000'
    )
      .replaceAll(' ', '')
      .match(/../g) as string[],
    (byte) => parseInt(byte, 16),
  );
export const withByte = (at: number, value: number) => Object.assign(goodBytes(), { [at]: value });
export function withSizes(rows: number, columns: number): Uint8Array {
  const bytes = goodBytes();
  new DataView(bytes.buffer).setBigUint64(56, BigInt(rows), true);
  new DataView(bytes.buffer).setBigUint64(64, BigInt(columns), true);
  return bytes;
}

/** Operands of integers for `gemm`, in place of the good ones. */
export const integers = (dtype: DType = 'int32') => ({
  a: ofType(dtype, 1, 1),
  b: ofType(dtype, 1, 1),
  c: ofType(dtype),
  out: undefined,
});
/** Operands of integers for `matmul`, in place of the good ones. */
export const stacks = (dtype: DType) => ({
  src: ofType(dtype, 2),
  weights: ofType(dtype, 2),
  bias: null,
  out: undefined,
});

/**
 * The arguments of a good call whose operands are in one buffer, and `out` begins at one of them.
 *
 * @param operand the name of that operand
 */
export function inOneBuffer(name: CallName, operand: string): Named {
  const given: Named = goodCalls[name].args();
  if (name === 'qgemm')
    Object.assign(given, {
      yScale: Float32Array.of(30),
      yZeroPoint: Uint8Array.of(100),
      out: uint8([2, 2], 9, 9, 9, 9),
    });
  const buffer = new ArrayBuffer(8192);
  let next = 0;
  const move = (value: unknown, at = next): unknown => {
    const { data, ...rest } = (ArrayBuffer.isView(value) ? { data: value } : value) as {
      data: Float32Array;
    };
    const Class = data.constructor as typeof Float32Array;
    const moved = new Class(buffer, at, data.length);
    if (at === next) moved.set(data);
    next = Math.max(next, at + 512);
    return ArrayBuffer.isView(value) ? moved : { data: moved, ...rest };
  };
  let result = given;
  let start = 0;
  for (const key of Object.keys(goodCalls[name].operands)) {
    if (key === 'out') continue;
    // `out` may be exactly C, so it begins one element behind it.
    if (key === operand) start = next + (name === 'gemm' && key === 'c' ? 4 : 0);
    result = changed(result, { [key]: move(get(result, key)) });
  }
  return { ...result, out: move(given.out, start) };
}

/** An argument, or a property of one. */
export function get(args: Named, path: string): unknown {
  const [name, property] = path.split('.') as [string, string?];
  return property ? (args[name] as Named)[property] : args[name];
}

/** A call of an operation. */
export interface GoodCall {
  /** The method of the instance; the errors begin with it, unless the call is of `explain`. */
  method: string;
  /** Its arguments: what every row starts from. */
  args: () => Named;
  /** The names of the arguments that come one by one. The other arguments are options. */
  first: readonly string[];
  /** The names of the options, if all other arguments are inputs, which come first. */
  options?: readonly string[];
  /** The operands by name, and their names in errors. */
  operands: Readonly<Record<string, string>>;
}

const vectors = ['aScale', 'aZeroPoint', 'bScale', 'bZeroPoint', 'yScale', 'yZeroPoint'];
const operandsOf = (names: Record<string, string>, ...same: string[]) => ({
  ...names,
  ...Object.fromEntries(same.map((name) => [name, name])),
});
const matrices = { a: 'A', b: 'B' };

export const goodCalls = {
  gemm: {
    method: 'gemm',
    args: () => ({
      a: float32([2, 3], 1, 2, 3, 4, 5, 6),
      b: float32([3, 2], 1, 2, 3, 4, 5, 6),
      c: float32([2, 2], 1, 2, 3, 4),
      out: floats([2, 2], 9),
    }),
    first: ['a', 'b', 'c'],
    operands: operandsOf({ ...matrices, c: 'C' }, 'out'),
  },
  matmul: {
    method: 'matmul',
    args: () => ({
      src: ofType('float32', 2, 3, 4),
      weights: ofType('float32', 4, 5),
      bias: ofType('float32', 5),
      out: floats([2, 3, 5], 9),
    }),
    first: ['src', 'weights', 'bias'],
    operands: operandsOf({}, 'src', 'weights', 'bias', 'out'),
  },
  qgemm: {
    method: 'qgemm',
    args: () => ({
      a: bytesOfA(),
      aScale: Float32Array.of(0.5),
      aZeroPoint: Uint8Array.of(3),
      b: bytesOfB(),
      bScale: Float32Array.of(0.25, 0.75),
      bZeroPoint: int8([2], 7, -7),
      c: int32([2, 2], 1, 2, 3, 4),
      out: floats([2, 2], 9),
    }),
    first: [],
    options: ['alpha', 'transA', 'transB', 'activation', 'out'],
    operands: operandsOf({ ...matrices, c: 'C' }, ...vectors, 'out'),
  },
  matmulInteger: {
    method: 'matmulInteger',
    args: () => ({
      a: bytesOfA(),
      b: bytesOfB(),
      aZeroPoint: Uint8Array.of(3),
      bZeroPoint: int8([2], 7, -7),
      out: int32([2, 2], 9, 9, 9, 9),
    }),
    first: ['a', 'b'],
    operands: operandsOf(matrices, 'aZeroPoint', 'bZeroPoint', 'out'),
  },
  qlinearMatmul: {
    method: 'qlinearMatmul',
    args: () => ({
      a: bytesOfA(),
      b: bytesOfB(),
      aScale: Float32Array.of(0.5),
      aZeroPoint: Uint8Array.of(3),
      bScale: Float32Array.of(0.25, 0.75),
      bZeroPoint: int8([2], 7, -7),
      yScale: Float32Array.of(30),
      yZeroPoint: Uint8Array.of(100),
      out: uint8([2, 2], 9, 9, 9, 9),
    }),
    first: [],
    options: ['transA', 'transB', 'activation', 'out'],
    operands: operandsOf(matrices, ...vectors, 'out'),
  },
  dynamicQuantizeMatmul: {
    method: 'dynamicQuantizeMatmul',
    args: () => ({
      a: float32([2, 3], 1, -2, 3, 4, 5, 0.25),
      b: bytesOfB(),
      bScale: Float32Array.of(0.25, 0.75),
      bZeroPoint: int8([2], 7, -7),
      bias: Float32Array.of(3, -5),
      out: floats([2, 2], 9),
    }),
    first: ['a', 'b'],
    operands: operandsOf(matrices, 'bScale', 'bZeroPoint', 'bias', 'out'),
  },
  matmulIntegerToFloat: {
    method: 'matmulIntegerToFloat',
    args: () => ({
      a: bytesOfA(),
      b: bytesOfB(),
      aScale: Float32Array.of(0.5),
      bScale: Float32Array.of(0.25, 0.75),
      aZeroPoint: Uint8Array.of(3),
      bZeroPoint: int8([2], 7, -7),
      bias: Float32Array.of(3, -5),
      out: floats([2, 2], 9),
    }),
    first: ['a', 'b'],
    operands: operandsOf(matrices, ...vectors.slice(0, 4), 'bias', 'out'),
  },
  matmulNBits: {
    method: 'matmulNBits',
    args: () => ({
      a: floats([3, 20], 1),
      weights: codes(),
      bias: Float32Array.of(1, 2),
      accuracyLevel: 4,
      out: floats([3, 2], 9),
    }),
    first: ['a', 'weights'],
    operands: {
      a: 'A',
      'weights.data': 'B',
      'weights.scales': 'scales',
      'weights.zeroPoints': 'zeroPoints',
      bias: 'bias',
      out: 'out',
    },
  },
  syrk: {
    method: 'syrk',
    args: () => ({
      a: float32([2, 3], 1, 2, 3, 4, 5, 6),
      alpha: 2,
      out: floats([2, 2], 9),
    }),
    first: ['a'],
    operands: operandsOf({ a: 'A' }, 'out'),
  },
  pack: {
    method: 'pack',
    args: () => ({ b: ofType('float32', 3, 2), op: 'gemm' }),
    first: ['b'],
    operands: { b: 'B' },
  },
  packForQGemm: {
    method: 'pack',
    args: () => ({ b: bytesOfB(), op: 'qgemm' }),
    first: ['b'],
    operands: { b: 'B' },
  },
  packForNBits: {
    method: 'pack',
    args: () => ({ weights: codes(), op: 'matmulNBits' }),
    first: ['weights'],
    operands: {
      'weights.data': 'B',
      'weights.scales': 'scales',
      'weights.zeroPoints': 'zeroPoints',
    },
  },
  explain: {
    method: 'explain',
    args: () => ({ op: 'gemm', a: ofType('float32', 2, 3), b: ofType('float32', 3, 2) }),
    first: ['op', 'a', 'b'],
    operands: {},
  },
  alloc: {
    method: 'alloc',
    args: () => ({ dtype: 'float32', shape: [2, 3] }),
    first: ['dtype', 'shape'],
    operands: {},
  },
  deserialize: {
    method: 'deserialize',
    args: () => ({ bytes: goodBytes() }),
    first: ['bytes'],
    operands: {},
  },
  packFrom: {
    method: 'packFrom',
    args: () => ({
      from: Uint8Array.of(...[0, 0, 128, 63], ...[0, 0, 0, 64]), // 1 and 2
      place: { type: 'F32', shape: [2, 1] },
    }),
    first: ['from', 'place'],
    operands: {},
  },
} as const satisfies Record<string, GoodCall>;

export type CallName = keyof typeof goodCalls;

/** The list of arguments. `inputs` and `options`, if given, stand for all of them. */
function listOf(name: CallName, args: Named): unknown[] {
  const { first, options }: GoodCall = goodCalls[name];
  const isInput = (key: string) => options !== undefined && !options.includes(key);
  const rest = Object.entries(args).filter(
    ([key]) => !first.includes(key) && key !== 'inputs' && key !== 'options',
  );
  const list = first.map((key) => args[key]);
  if (options)
    list.push(
      'inputs' in args ? args.inputs : Object.fromEntries(rest.filter(([key]) => isInput(key))),
    );
  if ('options' in args) list.push(args.options);
  else if (!['explain', 'alloc', 'deserialize'].includes(name))
    list.push(Object.fromEntries(rest.filter(([key]) => !isInput(key))));
  return list;
}

/** The arguments with these changes. `'a.shape'` changes a property of the argument `a`. */
export function changed(args: Named, changes: Named): Named {
  const result = { ...args };
  for (const [key, value] of Object.entries(changes)) {
    const [name, property] = key.split('.') as [string, string?];
    result[name] = property ? { ...(result[name] as object), [property]: value } : value;
  }
  return result;
}

type Method = (...args: unknown[]) => unknown;

/** Makes the call. `run`: whether to compute it, or only to explain it. */
export function call(
  instance: Instance,
  name: CallName,
  args: Named,
  run: 'compute' | 'explain' = 'compute',
): unknown {
  const { method } = goodCalls[name];
  const list = listOf(name, args);
  if (run === 'explain') return (instance.explain as Method)(method, ...list);
  if (name === 'packFrom') return (packFrom as Method)(instance, ...list);
  return (instance as unknown as Record<string, Method>)[method]?.apply(instance, list);
}

/** Whether `explain` has the operation. */
export const isExplained = (name: CallName) =>
  ![
    ...['pack', 'packForQGemm', 'packForNBits', 'explain', 'alloc', 'deserialize', 'packFrom'],
  ].includes(name);

export interface Handle {
  dispose(): void;
  disposed: boolean;
}

/** Handles of an instance. */
export interface Handles {
  tensor: Handle;
  /** Weights (3, 2) for gemm and matmul. */
  forGemm: Handle;
  /** Weights (3, 2) for products of 8-bit operands. */
  forQGemm: Handle;
  /** The same with one batch axis. */
  stack: Handle;
  /** Weights of float32 for matmul, with the shape (3, 3, 2). */
  batch: Handle;
  /** Weights (3, 2) of bfloat16 for gemm and matmul. */
  halves: Handle;
  forNBits: Handle;
  disposed: Handle;
  disposedWeights: Handle;
  foreign: Handle;
  foreignWeights: Handle;
}

/** Makes handles, in an instance here or in a worker. `other`: the instance of the foreign ones. */
export async function handlesOf(instance: Instance, other: Instance): Promise<Handles> {
  const [make, makeElsewhere] = [instance, other] as unknown as Record<'alloc' | 'pack', Method>[];
  const pack = async (b: unknown, op: string, as?: string) =>
    (await make?.pack(b, as ? { op, as } : { op })) as Handle;
  const disposed = (await make?.alloc('int8', [2, 2])) as Handle;
  const disposedWeights = await pack(ofType('float32', 3, 2), 'gemm');
  for (const handle of [disposed, disposedWeights]) handle.dispose();
  return {
    disposed,
    disposedWeights,
    foreign: (await makeElsewhere?.alloc('int8', [2, 2])) as Handle,
    foreignWeights: (await makeElsewhere?.pack(ofType('float32', 3, 2), {
      op: 'gemm',
    })) as Handle,
    tensor: (await make?.alloc('float32', [2, 2])) as Handle,
    forGemm: await pack(ofType('float32', 3, 2), 'gemm'),
    forQGemm: await pack(bytesOfB(), 'qgemm'),
    stack: await pack({ ...bytesOfB(), shape: [1, 3, 2] }, 'qgemm'),
    batch: await pack(ofType('float32', 3, 3, 2), 'matmul'),
    halves: await pack(ofType('float32', 3, 2), 'gemm', 'bfloat16'),
    forNBits: await pack(codes(), 'matmulNBits'),
  };
}
