// The cases, the contestants of each, and how fast wgemm must be.
import { hasPeer } from './integer.mjs';

/**
 * A goal: how many times as fast wgemm must be, in one of its forms, as another contestant or as
 * the fastest peer. `limit`: a bound of the case. If wgemm reaches 95% of it, the ratio does not
 * matter. `withDot`: the ratio if the engine has 8-bit dot products of any operands.
 */
const faster = (of, atLeast, { than = 'peers', limit, withDot } = {}) => ({
  of,
  than,
  atLeast,
  limit,
  withDot,
});
/** The goal is 95% of a physical limit, whatever the peers reach. */
const reaches = (limit, of = 'wgemm') => faster(of, 0.95, { than: limit });
const inRegisters = { limit: 'limit' };

export const sizeOf = ({ m, n, k }) => `${m}x${n}x${k}`;

const cube = (size) => ({ m: size, n: size, k: size });
const raw = {};
const packed = { packed: true };
const [bfloat16, float16] = ['bfloat16', 'float16'].map((as) => ({ ...packed, as }));
const [simd128, strict, twoThreads] = [
  { simd: 'simd128' },
  { determinism: 'strict' },
  { threads: 2 },
];
const ort = ['ORT', 'ORT, constant B'];
const gemv = { m: 1, n: 4096, k: 4096 };

const gemmCases = [
  {
    dtype: 'float32',
    ...cube(1024),
    own: [raw, packed, simd128, strict, twoThreads],
    bounds: ['micro-kernel', 'limit', 'two at once'],
    goals: [
      faster('wgemm', 1.75, inRegisters),
      faster('wgemm, B packed', 1.75, inRegisters),
      faster('wgemm, 2 threads', 1.85, { than: 'wgemm', limit: 'two at once' }),
    ],
  },
  {
    dtype: 'float32',
    ...cube(256),
    bounds: ['micro-kernel', 'limit'],
    goals: [faster('wgemm', 1.75, inRegisters)],
  },
  {
    dtype: 'float32',
    ...cube(64),
    bounds: ['micro-kernel', 'limit'],
    goals: [faster('wgemm', 1.9, inRegisters)],
  },
  // The target was set before numpy-ts was measured at this size.
  {
    dtype: 'float32',
    ...cube(16),
    bounds: ['micro-kernel'],
    goals: [faster('wgemm', 8, { than: 'tfjs' })],
  },
  { dtype: 'float32', m: 128, n: 3072, k: 768 },
  {
    dtype: 'float32',
    ...gemv,
    own: [raw, packed],
    bounds: ['memory'],
    goals: [reaches('memory'), reaches('memory', 'wgemm, B packed')],
  },
  { dtype: 'float32', m: 4096, n: 1, k: 4096 },
  // With transposed operands, the others take up to seconds per call.
  { dtype: 'float32', ...gemv, transB: true, peers: ort },
  { dtype: 'float32', ...cube(1024), transA: true, peers: ort },
  { dtype: 'float32', ...cube(1024), transB: true, peers: ort },
  // Compared with our own float32, whose weights take twice the bytes.
  ...Object.entries({ bfloat16: 1.9, float16: 1.5 }).map(([dtype, ratio]) => ({
    dtype,
    ...gemv,
    own: [packed, { ...packed, dtype: 'float32' }],
    peers: ['ORT, constant B'],
    bounds: ['memory'],
    goals: [
      faster('wgemm, B packed', ratio, { than: 'wgemm, B packed, float32', limit: 'memory' }),
    ],
  })),
  // float32 by weights of 16 bits, compared with float32 weights.
  ...[gemv, { m: 128, n: 3072, k: 768 }].map((each) => ({
    dtype: 'float32',
    ...each,
    own: [packed, bfloat16, float16],
    peers: [],
    suffix: ', weights of 16 bits',
  })),
  {
    dtype: 'float16',
    ...cube(256),
    bounds: ['micro-kernel', 'limit'],
    goals: [faster('wgemm', 2, inRegisters)],
  },
  { dtype: 'bfloat16', ...cube(256) },
  {
    dtype: 'float64',
    ...cube(256),
    bounds: ['micro-kernel', 'limit'],
    goals: [faster('wgemm', 2, inRegisters)],
  },
  ...['int32', 'uint32'].map((dtype) => ({
    dtype,
    ...cube(512),
    bounds: ['micro-kernel', 'limit'],
    goals: [reaches('limit')],
  })),
  ...['int64', 'uint64'].map((dtype) => ({
    dtype,
    ...cube(512),
    bounds: ['micro-kernel', 'limit', 'scalar limit'],
    goals: [reaches('limit'), reaches('scalar limit')],
  })),
].map((each) => ({
  own: [raw],
  ...each,
  operation: 'gemm',
  name:
    `${each.dtype} ` +
    `${sizeOf(each)}${each.transA ? ', transA' : ''}${each.transB ? ', transB' : ''}` +
    `${each.suffix ?? ''}`,
}));

// syrk next to gemm, which multiplies A by its transpose, too.
const syrkCases = [512, 1000].map((size) => ({
  dtype: 'float32',
  ...cube(size),
  operation: 'gemm',
  transB: true,
  isGram: true,
  own: [raw, { name: 'syrk' }],
  peers: [],
  goals: [faster('wgemm, syrk', 1.7, { than: 'wgemm' })],
  name: `syrk float32 ${sizeOf(cube(size))}`,
}));

// B uses all bits of its type, unless `bits` says how many. The result is float32 by default.
const u8s8 = { typeOfA: 'uint8', typeOfB: 'int8' };
const combinations = ['uint8', 'int8'].flatMap((typeOfA) =>
  ['uint8', 'int8'].map((typeOfB) => ({ typeOfA, typeOfB })),
);
const qgemmCases = [
  {
    ...u8s8,
    ...cube(1024),
    own: [packed, raw, { ...packed, ...twoThreads }],
    bounds: ['micro-kernel', 'limit', 'two at once'],
    goals: [
      faster('wgemm, B packed', 1.15, { ...inRegisters, withDot: 2 }),
      faster('wgemm, B packed, 2 threads', 1.85, { than: 'wgemm, B packed', limit: 'two at once' }),
    ],
  },
  { ...u8s8, ...cube(1024), bits: 7 },
  {
    typeOfA: 'uint8',
    typeOfB: 'uint8',
    ...cube(1024),
    bounds: ['micro-kernel', 'limit'],
    goals: [faster('wgemm, B packed', 1.15, { ...inRegisters, withDot: 2 })],
  },
  {
    typeOfA: 'int8',
    typeOfB: 'int8',
    ...cube(1024),
    bounds: ['micro-kernel', 'limit'],
    goals: [faster('wgemm, B packed', 1.15, { ...inRegisters, withDot: 2 })],
  },
  { ...u8s8, ...cube(256), own: [packed, raw] },
  { ...u8s8, ...cube(64) },
  { ...u8s8, typeOfY: 'uint8', m: 128, n: 3072, k: 768 },
  {
    ...u8s8,
    ...gemv,
    own: [packed, raw],
    bounds: ['memory'],
  },
].map((each) => {
  const { typeOfA, typeOfB, typeOfY, bits } = each;
  const suffix = `${typeOfY ? ` to ${typeOfY}` : ''}${bits ? `, B of ${bits} bits` : ''}`;
  return {
    typeOfY: 'float32',
    own: [packed],
    ...each,
    operation: 'qgemm',
    name: `${typeOfA} x ${typeOfB} ${sizeOf(each)}${suffix}`,
  };
});

// The products of dynamically quantized models. ONNX Runtime computes a signed A without vectors.
const operandsOf = {
  matmulInteger: combinations,
  qlinearMatmul: combinations,
  dynamicQuantizeMatmul: ['int8', 'uint8'].map((typeOfB) => ({ typeOfA: 'float32', typeOfB })),
  matmulIntegerToFloat: combinations,
};
const integerCases = Object.entries(operandsOf).flatMap(([operation, types]) =>
  [gemv, { m: 128, n: 1024, k: 1024 }, { batch: 12, m: 128, n: 128, k: 64 }].flatMap((size) =>
    types
      // The large products in the two combinations that models have.
      .filter(({ typeOfA, typeOfB }) => size === gemv || (typeOfA !== 'int8' && typeOfB === 'int8'))
      .map(({ typeOfA, typeOfB }) => ({
        operation,
        typeOfA,
        typeOfB,
        ...size,
        own: [packed, raw],
        bounds: size === gemv ? ['memory'] : [],
        goals: hasPeer({ operation, typeOfA, typeOfB })
          ? [
              faster('wgemm, B packed', size !== gemv ? 1.1 : typeOfA === 'int8' ? 60 : 8, {
                withDot: size === gemv ? undefined : 1.8,
                limit: size === gemv ? 'memory' : undefined,
              }),
              faster('wgemm', 1),
            ]
          : [],
        name:
          `${operation} ${typeOfA} x ${typeOfB} ` +
          `${size.batch ? `${size.batch} x ` : ''}${sizeOf(size)}`,
      })),
  ),
);

// Level 0 comes first: the results of the others are compared with its own. Next to them, our
// float32 by weights that are the same numbers.
const floats = { ...packed, floats: true, name: 'float32' };
const [level4, level0] = [4, 0].map((level) => ({ ...packed, level }));
const nbitsGoals = (level, ofPeers, ofFloats) => [
  faster(`wgemm, B packed, level ${level}`, ofPeers),
  ...(ofFloats
    ? [faster(`wgemm, B packed, level ${level}`, ofFloats, { than: 'wgemm, B packed, float32' })]
    : []),
];
const nbitsCases = [
  {
    ...gemv,
    bits: 4,
    own: [level0, level4, { level: 4 }, floats],
    goals: [...nbitsGoals(4, 20, 3), ...nbitsGoals(0, 8, 1)],
  },
  ...[8, 2].map((bits) => ({ ...gemv, bits, goals: nbitsGoals(4, 15) })),
  {
    ...{ m: 128, n: 1024, k: 1024 },
    bits: 4,
    goals: [...nbitsGoals(4, 1.7), ...nbitsGoals(0, 1.7)],
  },
].map((each) => ({
  own: [level0, level4, floats],
  ...each,
  operation: 'matmulNBits',
  dtype: 'float32',
  blockSize: 32,
  peers: ['ORT, constant B'],
  name: `matmulNBits ${each.bits} bits ${sizeOf(each)}`,
}));

// Weights in block formats of ggml, at level 4, next to our 4 bits and to float32.
const blocksCases = [
  { ...gemv, than: 'wgemm, B packed, level 4', mosts: [1.15, 1.3, 1.3] },
  { m: 128, n: 4096, k: 4096, than: 'wgemm, B packed, float32', mosts: [1.1, 1.15, 1.15] },
].map(({ than, mosts, ...size }) => ({
  ...size,
  operation: 'matmulNBits',
  dtype: 'float32',
  bits: 4,
  blockSize: 32,
  own: [
    ...[level0, level4],
    ...['Q4_K', 'Q5_K', 'Q6_K', 'Q4_0', 'Q8_0'].map((format) => ({ ...packed, format })),
    floats,
  ],
  peers: [],
  goals: ['Q4_K', 'Q5_K', 'Q6_K'].map((format, i) => ({
    of: `wgemm, B packed, ${format}`,
    than,
    atMost: mosts[i],
  })),
  name: `matmulNBits blocks of ggml ${sizeOf(size)}`,
}));

// Every contestant of two types in one case: times of different moments do not compare.
const combinationsCase = {
  ...cube(1024),
  operation: 'qgemm',
  name: `uint8 and int8 in all combinations ${sizeOf(cube(1024))}`,
  typeOfY: 'float32',
  together: combinations.map((types) => ({
    ...types,
    own: [{ ...packed, name: `${types.typeOfA} x ${types.typeOfB}` }],
    peers: [],
  })),
  goals: [{ of: 'the slowest', than: 'the fastest', atMost: 1.05 }],
};

const weightsCase = {
  ...gemv,
  name: `weights of float32 and int8 ${sizeOf(gemv)}`,
  together: [
    { operation: 'gemm', dtype: 'float32', own: [{ ...packed, name: 'float32' }], peers: [] },
    {
      operation: 'qgemm',
      ...u8s8,
      typeOfY: 'float32',
      own: [{ ...packed, name: 'int8' }],
      peers: [],
    },
  ],
  goals: [faster('wgemm, B packed, int8', 3, { than: 'wgemm, B packed, float32' })],
};

// The scores and contexts of twelve heads of attention.
const matmulCases = [
  { m: 128, n: 128, k: 64 },
  { m: 128, n: 128, k: 64, transB: true },
  { m: 128, n: 64, k: 128 },
  { m: 128, n: 64, k: 128, transB: true },
].map((each) => ({
  ...each,
  batch: 12,
  dtype: 'float32',
  operation: 'matmul',
  own: [raw, { oneByOne: true }],
  name: `matmul float32 12 x ${sizeOf(each)}${each.transB ? ', transposeB' : ''}`,
}));

// Products narrower than a tile: in the heap, on arrays, by a loop in JavaScript, and next to the
// product that fills the tile.
const nextToHeap = [
  { arrays: true, own: [{ name: 'arrays' }], peers: [] },
  { own: [], peers: ['loop'] },
];
const narrowCases = [
  ...[
    { m: 1, n: 7, k: 4096, transB: true, wider: { n: 8 } },
    { m: 4, n: 7, k: 4096, transB: true, wider: { n: 8 } },
    { m: 1, n: 9, k: 4096, transB: true, wider: { n: 12 } },
    { m: 7, n: 1, k: 4096, wider: { m: 16 } },
  ].flatMap(({ wider, ...size }) =>
    ['float32', 'float64', 'int32'].map((dtype) => {
      const name = sizeOf({ ...size, ...wider });
      return {
        ...size,
        operation: 'gemm',
        dtype,
        name: `narrow ${dtype} ${sizeOf(size)}${size.transB ? ', transB' : ''}`,
        together: [
          { own: [raw], peers: [] },
          ...nextToHeap,
          { ...wider, own: [{ name }], peers: [] },
        ],
        goals: [
          { of: 'wgemm', than: `wgemm, ${name}`, atMost: 1.1 },
          { of: 'wgemm, arrays', than: 'loop', atMost: 1.1 },
        ],
      };
    }),
  ),
  ...['float32', 'float64'].flatMap((dtype) =>
    [1e4, 1e6, 4e6].map((k) => ({
      ...{ m: 1, n: 1, k },
      operation: 'matmul',
      isVectors: true,
      dtype,
      name: `narrow ${dtype} vector times vector, ${k}`,
      together: [{ own: [raw], peers: [], bounds: k > 1e4 ? ['memory'] : [] }, ...nextToHeap],
      goals: [
        k > 1e4 ? reaches('memory') : faster('wgemm', 3, { than: 'loop' }),
        faster('wgemm, arrays', 1, { than: 'loop' }),
      ],
    })),
  ),
  ...[
    { ...cube(4), sharesA: true },
    ...[2, 3, 4].map(cube),
    { ...cube(4), transB: true },
    { m: 1, n: 4, k: 4 },
  ].map((size) => {
    const { m, n, k, sharesA, transB } = size;
    const suffix = `${sharesA ? ', one A' : ''}${transB ? ', transposeB' : ''}`;
    const atMost = m * n * k === 64 ? 1.1 : 3;
    return {
      ...size,
      batch: 10_000,
      operation: 'matmul',
      dtype: 'float32',
      name: `narrow float32 10000 x ${sizeOf(size)}${suffix}`,
      together: [{ own: [raw], peers: [] }, ...nextToHeap],
      goals: [{ of: 'wgemm', than: 'loop', atMost }],
    };
  }),
];

// Calls of a few microseconds, next to a loop: in the heap, and on arrays with and without `out`.
const smallCases = [2, 3, 4, 6, 8, 10, 12, 16].map((size) => {
  const ofArrays = { 8: { atMost: 1.5 }, 12: { atMost: 1 }, 16: { atMost: 1 } }[size];
  return {
    ...cube(size),
    operation: 'gemm',
    dtype: 'float32',
    name: `small float32 ${sizeOf(cube(size))}`,
    together: [
      { own: [raw], peers: [], bounds: size === 16 ? ['micro-kernel'] : [] },
      {
        arrays: true,
        own: [{ name: 'arrays' }, { name: 'arrays and out', hasOut: true }],
        peers: [],
      },
      { own: [], peers: ['loop'] },
    ],
    goals: ofArrays
      ? ['wgemm, arrays', 'wgemm, arrays and out'].map((of) => ({ of, than: 'loop', ...ofArrays }))
      : [],
  };
});

/** The table. */
export const cases = [
  ...smallCases,
  ...narrowCases,
  ...gemmCases,
  ...syrkCases,
  ...matmulCases,
  ...qgemmCases,
  ...integerCases,
  ...nbitsCases,
  ...blocksCases,
  combinationsCase,
  weightsCase,
];

const sweepSizes = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048].map(
  cube,
);
sweepSizes.push({ m: 31, n: 33, k: 37 }, { m: 127, n: 129, k: 131 }, { m: 1000, n: 1016, k: 1040 });
sweepSizes.sort((a, b) => a.m - b.m);

/** Each library in its fastest form, over sizes: the picture shows these. */
export const sweeps = [
  ...sweepSizes.map((size) => ({
    ...size,
    operation: 'gemm',
    dtype: 'float32',
    own: [raw, simd128],
    peers: ['ORT, constant B', 'tfjs', 'numpy-ts'],
  })),
  ...sweepSizes.map((size) => ({
    ...size,
    operation: 'qgemm',
    ...u8s8,
    typeOfY: 'float32',
    own: [packed],
    peers: ['ORT, constant B'],
  })),
].map((each) => ({
  ...each,
  name: `sweep ${each.dtype ?? `${each.typeOfA} x ${each.typeOfB}`} ${sizeOf(each)}`,
}));

/** One size grows while the others stay, for each type and form. */
export const cliffs = [
  ...['float32', 'float64', 'int32', 'int64', 'float16', 'bfloat16'].map((dtype) => ({
    operation: 'gemm',
    dtype,
    label: dtype,
  })),
  { operation: 'gemm', dtype: 'float32', packed: true, label: 'float32, B packed,' },
  { operation: 'qgemm', ...u8s8, packed: true, label: 'uint8 x int8, B packed,' },
  { operation: 'qgemm', ...u8s8, label: 'uint8 x int8' },
].flatMap((each) =>
  ['M', 'N', 'K'].map((axis) => ({ ...each, axis, name: `cliff ${each.label} ${axis}` })),
);

/**
 * The cases whose names contain the text. Cliffs take minutes, so a text that does not name them
 * chooses none.
 */
export function choose(filter) {
  const contain = (list) => list.filter(({ name }) => name.includes(filter));
  return {
    cases: contain(cases),
    sweeps: contain(sweeps),
    cliffs: filter.includes('cliff') ? contain(cliffs) : [],
  };
}
