/**
 * A fixed set of problems, whose results with `determinism: 'strict'` are the same bits everywhere,
 * and the SHA-256 of the results. Programs without Vitest use it too.
 */
import type {
  DataArray,
  DType,
  Gemm,
  PackedWeights,
  PackOptions,
  QGemmInputs,
  QuantizedArray,
  TensorLike,
} from 'wgemm';
import { arrayClasses } from './dtypes.js';
import { Random } from './random.js';

/**
 * SHA-256 over the results, one after another: over all of them with `'strict'`, and over the exact
 * ones alone, with `'fast'` too. `serialized`: over the bytes of all packed weights.
 */
export const hashes = {
  strict: '3d0de6c315c0d0e9328ff9d8e080d0f184db40ca225a11e8c7090b32dba5b829',
  exact: '575e23278addb3f9b909bb6f8f8a3196c07e24685c9f9ec29a9b5c5e28bfea4c',
  serialized: 'd620f63205b787e6fed04a5dbc779332bdb3f10286e28b421c8bbdc11ad20765',
};

/**
 * Whether there can be several threads. They need shared memory, which a page has only if it is
 * isolated.
 */
export const hasThreads =
  (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated !== false &&
  typeof SharedArrayBuffer === 'function';

/** The numbers of threads that results must not depend on. */
export const threadCounts: readonly number[] = [1, 2, 3];

export interface Operand {
  readonly data: DataArray;
  readonly shape: readonly number[];
  readonly dtype: DType;
}
type Optional = Operand | null;

/**
 * Attributes and operands, in the order of the specifications. `exact`: the results are the same
 * bits without `'strict'`, too.
 */
export type Problem = { readonly name: string; readonly exact: boolean } & (
  | {
      readonly op: 'gemm';
      readonly attributes: readonly [alpha: number, beta: number, transA: number, transB: number];
      readonly operands: readonly [a: Operand, b: Operand, c: Optional];
    }
  | {
      readonly op: 'qgemm';
      readonly attributes: readonly [alpha: number, transA: number, transB: number];
      readonly operands: readonly [
        ...[a: Operand, aScale: Operand, aZeroPoint: Optional],
        ...[b: Operand, bScale: Operand, bZeroPoint: Optional],
        ...[c: Optional, yScale: Optional, yZeroPoint: Optional],
      ];
    }
  | {
      readonly op: 'matmul';
      readonly attributes: readonly [transposeA: number, transposeB: number, outType: DType];
      readonly operands: readonly [src: Operand, weights: Operand, bias: Optional];
    }
);

const floats = ['float32', 'float64', 'float16', 'bfloat16'] as const;
const integers = ['int32', 'uint32', 'int64', 'uint64'] as const;

type Sizes = readonly [m: number, n: number, k: number];
const small: readonly Sizes[] = [
  [1, 1, 1],
  [1, 40, 300],
  [3, 17, 33],
  [4, 8, 5000],
  [37, 41, 129],
  [64, 64, 64],
];

/**
 * Enough work to be shared among threads: along M and N, along M alone, along N alone, and with a K
 * that is split.
 */
const large = {
  float32: [
    [300, 260, 200],
    [2000, 16, 64],
    [8, 3000, 64],
    [1, 2000, 150],
    [50, 40, 5000],
  ],
  float64: [
    [200, 200, 100],
    [2000, 16, 64],
    [8, 3000, 64],
  ],
  float16: [[200, 150, 100]],
  bfloat16: [[150, 200, 100]],
  int32: [[260, 300, 150]],
  int64: [[150, 130, 100]],
} satisfies Partial<Record<DType, readonly Sizes[]>>;

/** Makes the set; always the same, whatever the engine. */
export function makeProblems(): readonly Problem[] {
  const random = new Random(2026);
  const whole = (least: number, most: number) => random.between(least, most);

  /**
   * An element of each type, made from whole numbers alone, so that all engines round it alike. It
   * has all digits of the type: products of fewer digits would be exact, and so the same if fused or
   * in another order.
   */
  const draw: Record<DType, () => number | bigint> = {
    float32: () => whole(-(2 ** 24), 2 ** 24) / 2 ** 24,
    float64: () => whole(-(2 ** 26), 2 ** 26) / 2 ** 26 + whole(0, 2 ** 26) / 2 ** 53,
    float16: () => (whole(0, 1) << 15) | whole(0x2000, 0x3c00),
    bfloat16: () => (whole(0, 1) << 15) | whole(0x3c00, 0x3f80),
    int32: () => whole(-(2 ** 31), 2 ** 31 - 1),
    uint32: () => whole(0, 2 ** 32 - 1),
    int64: () => BigInt(whole(-(2 ** 31), 2 ** 31 - 1)) * 0x100000001n,
    uint64: () => BigInt(whole(0, 2 ** 32 - 1)) * 0x100000001n,
    int8: () => whole(-128, 127),
    uint8: () => whole(0, 255),
  };
  const tensor = (dtype: DType, shape: readonly number[], element = draw[dtype]): Operand => {
    const data = new arrays[dtype](shape.reduce((product, size) => product * size, 1));
    for (let i = 0; i < data.length; ++i) data[i] = element();
    return { data: data as unknown as DataArray, shape, dtype };
  };
  /** A matrix, or a stack of them. */
  const matrices = (
    dtype: DType,
    batch: readonly number[],
    rows: number,
    columns: number,
    isTransposed: boolean,
  ) => tensor(dtype, [...batch, ...(isTransposed ? [columns, rows] : [rows, columns])]);
  const one = (dtype: DType, value: number) => tensor(dtype, [], () => value);

  const problems: Problem[] = [];

  for (const dtype of [...floats, ...integers]) {
    const exact = dtype.includes('int');
    const sizes: readonly Sizes[] = [
      ...small,
      ...(dtype in large ? (large[dtype as keyof typeof large] as readonly Sizes[]) : []),
    ];
    for (const [i, [m, n, k]] of sizes.entries()) {
      const [transA, transB, hasC] = [i % 2 === 1, i % 3 === 1, i % 2 === 0];
      const a = matrices(dtype, [], m, k, transA);
      const b = matrices(dtype, [], k, n, transB);
      const specials = specialsOf[dtype];
      if (i % 4 === 0 && m > 1 && specials) {
        // The infinities meet in sums, some of them as NaN; NaN is in other rows.
        const data = a.data as Float32Array;
        data.set(specials.slice(0, 2), 0);
        data.set(specials.slice(2), data.length - 1);
      }
      problems.push({
        name: `gemm ${dtype} ${m}x${n}x${k}`,
        exact,
        op: 'gemm',
        attributes: [
          ...(exact ? ([3, -2] as const) : ([0.3, -1.7] as const)),
          Number(transA),
          Number(transB),
        ],
        operands: [a, b, hasC ? tensor(dtype, [n]) : null],
      });
    }
  }

  const qgemm = (
    i: number,
    [m, n, k]: Sizes,
    typeOfA: 'int8' | 'uint8',
    typeOfB: 'int8' | 'uint8',
    bits = 8,
  ) => {
    const [transA, transB, isQuantized, hasC, isPerColumn] = [
      i % 4 === 2,
      i % 4 === 3,
      i % 2 === 1,
      i % 3 === 1,
      i % 3 === 2,
    ];
    const yZeroPoint = isQuantized ? one(i % 4 === 1 ? typeOfB : typeOfA, 3) : null;
    const b = matrices(typeOfB, [], k, n, transB);
    const bytes = b.data as Uint8Array;
    if (bits < 8) bytes.forEach((byte, j) => (bytes[j] = byte >> (8 - bits)));
    problems.push({
      name: `qgemm ${typeOfA} x ${typeOfB}, of ${bits} bits, to ${yZeroPoint?.dtype ?? 'float32'} ${m}x${n}x${k}`,
      exact: true,
      op: 'qgemm',
      attributes: [isQuantized ? 1 : 0.3, Number(transA), Number(transB)],
      operands: [
        matrices(typeOfA, [], m, k, transA),
        one('float32', 0.03),
        one(typeOfA, typeOfA === 'int8' ? -7 : 100),
        b,
        tensor('float32', [n], () => whole(1, 1000) / 65536),
        isPerColumn ? tensor(typeOfB, [n]) : one(typeOfB, typeOfB === 'int8' ? 5 : 120),
        hasC ? tensor('int32', [n], () => whole(-(2 ** 16), 2 ** 16)) : null,
        isQuantized ? one('float32', 0.25) : null,
        yZeroPoint,
      ],
    });
  };
  for (const [i, sizes] of small.entries()) {
    for (const typeOfA of ['uint8', 'int8'] as const)
      for (const typeOfB of ['uint8', 'int8'] as const) qgemm(i, sizes, typeOfA, typeOfB);
  }
  const largeOf8Bits: readonly Sizes[] = [
    [260, 300, 150],
    [260, 300, 150],
    [2000, 16, 64],
    [8, 3000, 64],
    [1, 3000, 64],
  ];
  for (const [i, sizes] of largeOf8Bits.entries()) qgemm(i, sizes, 'uint8', 'int8');
  // The relaxed build has a kernel for these.
  for (const [i, sizes] of [...small, ...largeOf8Bits].entries())
    qgemm(i, sizes, i % 2 ? 'int8' : 'uint8', i % 3 ? 'int8' : 'uint8', 7);

  /** `m` undefined: src is a vector. */
  const matmul = (
    dtype: DType,
    [m, n, k]: readonly [m: number | undefined, n: number, k: number],
    {
      src = [],
      weights = [],
      bias,
      transposeA = false,
      transposeB = false,
      outType = dtype,
    }: MatMulCase,
  ) => {
    const a = m === undefined ? tensor(dtype, [k]) : matrices(dtype, src, m, k, transposeA);
    const b = matrices(dtype, weights, k, n, transposeB);
    problems.push({
      name: `matmul ${dtype} [${a.shape.join()}] x [${b.shape.join()}]${outType === dtype ? '' : ` to ${outType}`}`,
      exact: dtype.includes('int'),
      op: 'matmul',
      attributes: [Number(transposeA), Number(transposeB), outType],
      operands: [a, b, bias ? tensor(dtype, bias) : null],
    });
  };
  for (const dtype of [...floats, ...integers]) {
    matmul(dtype, [5, 7, 19], { src: [3, 1], weights: [2], bias: [2, 1, 7] });
    matmul(dtype, [undefined, 9, 31], { weights: [2, 2], bias: [9], transposeB: true });
    matmul(dtype, [33, 20, 40], { src: [4], bias: [33, 1], transposeA: true });
  }
  // A stack with heads; weights that a whole batch shares; operands that lack each other's batch
  // axes; and GEMVs that each have weights of their own.
  matmul('float32', [64, 64, 32], {
    src: [2, 6],
    weights: [2, 6],
    bias: [2, 1, 1, 64],
    transposeB: true,
  });
  matmul('float32', [48, 96, 64], { src: [12], bias: [96] });
  matmul('float32', [40, 70, 50], {
    src: [5, 1],
    weights: [1, 4],
    bias: [4, 1, 70],
    transposeA: true,
  });
  matmul('float32', [1, 48, 64], { src: [100], weights: [100] });
  matmul('float64', [40, 70, 50], { src: [3, 1], weights: [4], bias: [70] });
  matmul('bfloat16', [50, 60, 70], { src: [6], weights: [6], bias: [60], outType: 'float32' });
  matmul('float16', [50, 60, 70], { src: [6], bias: [6, 50, 60], outType: 'float32' });
  matmul('int32', [50, 60, 70], { src: [6], weights: [6], bias: [60] });

  return problems;
}

interface MatMulCase {
  /** Axes in front of the matrix. */
  src?: readonly number[];
  weights?: readonly number[];
  bias?: readonly number[];
  transposeA?: boolean;
  transposeB?: boolean;
  outType?: DType;
}

/** With 16-bit types as their bits, in every engine. */
const arrays = { ...arrayClasses, float16: Uint16Array } as unknown as Record<
  DType,
  new (length: number) => { readonly length: number; [index: number]: number | bigint }
>;

/**
 * Infinity, minus infinity and a NaN. If the type is given as bits, the NaN is not the canonical
 * one.
 */
const specialsOf: Partial<Record<DType, readonly number[]>> = {
  float32: [Infinity, -Infinity, NaN],
  float64: [Infinity, -Infinity, NaN],
  float16: [0x7c00, 0xfc00, 0xfe01],
  bfloat16: [0x7f80, 0xff80, 0xffc1],
};

/** The bytes of a result; of B as it is, or packed by `packer`. */
export function run(wg: Gemm, problem: Problem, packer?: Gemm): Uint8Array {
  const { data } = compute(wg, problem, packer);
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** The bytes of B when it is packed. */
export function serialized(wg: Gemm, { op, attributes, operands }: Problem): Uint8Array {
  const [b, trans] =
    op === 'qgemm'
      ? [operands[3], attributes[2]]
      : op === 'gemm'
        ? [operands[1], attributes[3]]
        : [operands[1], attributes[1]];
  using weights = wg.pack(b as TensorLike<QuantizedArray>, { op, trans });
  return weights.serialize();
}

function pack(wg: Gemm, packer: Gemm, b: TensorLike, options: PackOptions): PackedWeights {
  const weights = packer.pack(b as TensorLike<QuantizedArray>, options);
  if (packer === wg) return weights;
  const bytes = weights.serialize();
  weights.dispose();
  return wg.deserialize(bytes);
}

function compute(
  wg: Gemm,
  { op, attributes, operands }: Problem,
  packer: Gemm | undefined,
): TensorLike {
  switch (op) {
    case 'gemm': {
      const [alpha, beta, transA, transB] = attributes;
      const [a, b, c] = operands;
      if (!packer) return wg.gemm(a, b, c, { alpha, beta, transA, transB });
      using weights = pack(wg, packer, b, { op, trans: transB });
      return wg.gemm(a, weights, c, { alpha, beta, transA });
    }
    case 'qgemm': {
      const [alpha, transA, transB] = attributes;
      const [a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint] = operands;
      const inputs = {
        a,
        aScale,
        aZeroPoint,
        b,
        bScale,
        bZeroPoint,
        c,
        yScale,
        yZeroPoint,
      } as QGemmInputs;
      if (!packer) return wg.qgemm(inputs, { alpha, transA, transB });
      using weights = pack(wg, packer, inputs.b as TensorLike, { op, trans: transB });
      return wg.qgemm({ ...inputs, b: weights }, { alpha, transA });
    }
    case 'matmul': {
      const [transposeA, transposeB, outType] = attributes;
      const [src, weights, bias] = operands;
      if (!packer) return wg.matmul(src, weights, bias, { transposeA, transposeB, outType });
      using packed = pack(wg, packer, weights, { op, trans: transposeB });
      return wg.matmul(src, packed, bias, { transposeA, outType });
    }
  }
}

export async function hashOf(results: readonly Uint8Array[]): Promise<string> {
  const joined = new Uint8Array(results.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const bytes of results) {
    joined.set(bytes, at);
    at += bytes.length;
  }
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', joined));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
