// The contestants of a case: wgemm in its forms, the peers, and the bounds of wgemm's speed.
//
// A contestant runs its product `times` times and then has result(), except a bound. Its kind is
// 'own', 'peer' or 'bound'. It has `operations` if they differ from the case's, and `tolerance`
// if its result may differ more than others. The tensors that wgemm reads and writes are in its
// heap.
import * as np from 'numpy-ts';
import { createGemm } from 'wgemm';
import { packFrom } from 'wgemm/weights';
import { encodeModel, loadOrt } from '../peers/onnx.mjs';
import { startTfjs, tfjsMatMul, version as tfjsVersion } from '../peers/tfjs.mjs';
import { qgemmData, randomArray, transposed } from './data.mjs';
import {
  integerArguments,
  integerData,
  integerModel,
  isInteger,
  typeOfResult,
} from './integer.mjs';
import { blocksOf, dequantized, nbitsData, nbitsModel, toleranceOfLevel4 } from './nbits.mjs';
import { startProgram } from './program.mjs';
import { manyRows } from './race.mjs';

/**
 * ONNX Runtime Web's own kernels: Gemm for floating point, MatMul alone for integers, none for
 * bfloat16.
 */
const ortOperator = {
  float32: 'Gemm',
  float64: 'Gemm',
  float16: 'Gemm',
  int32: 'MatMul',
  uint32: 'MatMul',
  int64: 'MatMul',
  uint64: 'MatMul',
};

/**
 * Whether the loops in registers are a limit here. Firefox 153 compiles them to half of the speed
 * of kernels.
 */
export const hasLimits = !globalThis.navigator?.userAgent.includes('Firefox');
const hasProcesses = typeof process === 'object'; // a page has none
const isBoundHere = (bound) =>
  bound === 'two at once' ? hasProcesses : hasLimits || !bound.endsWith('limit');

/** The peers of a case that does not name its own. */
const allPeers = ['ORT', 'ORT, constant B', 'tfjs', 'numpy-ts'];

/** Starts wgemm and the peers, on `threads` threads if they have threads here. */
export async function startAll({ threads }) {
  const instances = new Map();
  /** An instance of wgemm with these options of createGemm. */
  const instance = async (options = {}) => {
    const key = JSON.stringify(options);
    if (!instances.has(key)) instances.set(key, await createGemm({ threads, ...options }));
    return instances.get(key);
  };
  const wg = await instance();
  const ort = await loadOrt({ threads });
  const threadsOfTfjs = await startTfjs({ threads });
  return {
    wg,
    instance,
    ort,
    threads,
    versions: {
      wgemm: wg.info.version,
      'onnxruntime-web': ort.version,
      tfjs: tfjsVersion,
      'numpy-ts': np.__version__,
    },
    withoutThreads: threadsOfTfjs < threads ? ['tfjs', 'numpy-ts'] : ['numpy-ts'],
    dispose: () => instances.forEach((each) => each.dispose()),
  };
}

/**
 * The contestants of a case, whose `own` lists the forms of wgemm. A form whose product differs has
 * no result to compare.
 */
export async function contestantsOf(problem, library) {
  if (problem.together) {
    const each = await Promise.all(
      problem.together.map((part) =>
        contestantsOf({ ...problem, ...part, together: undefined }, library),
      ),
    );
    return each.flat().map((contestant) => ({ ...contestant, result: undefined }));
  }
  const { own, bounds = [] } = problem;
  const data = dataOf(problem);
  const contestants = [];
  for (const form of own.filter(({ threads = 1 }) => threads === 1 || library.threads === 1)) {
    const { simd, determinism, threads } = form;
    const wg = await library.instance({
      ...(simd && { simd }),
      ...(determinism && { determinism }),
      ...(threads && { threads }),
    });
    const calls = form.format
      ? await blocksOn(wg, problem, form, data)
      : ownOn(wg, problem, form, data);
    const contestant = { name: nameOf(form), kind: 'own', ...calls };
    if (form.dtype || form.as || form.format) contestant.result = undefined;
    contestants.push(contestant);
  }
  contestants.push(...(await peersOf(problem, data, library)));
  for (const bound of bounds.filter(isBoundHere))
    contestants.push(await boundOf(bound, problem, library, contestants[0]));
  return contestants;
}

function nameOf({ packed, as, oneByOne, level, format, name, simd, determinism, threads, dtype }) {
  const parts = [
    packed && 'B packed',
    as && `as ${as}`,
    oneByOne && 'one by one',
    level !== undefined && `level ${level}`,
    format,
    simd,
    determinism,
    threads && `${threads} threads`,
    dtype,
    name,
  ];
  return ['wgemm', ...parts.filter(Boolean)].join(', ');
}

function dataOf(problem) {
  if (isInteger(problem.operation)) return integerData(problem);
  if (problem.operation === 'matmulNBits') return nbitsData(problem);
  return problem.operation === 'qgemm' ? qgemmData(problem) : matricesOf(problem);
}

/** `isGram`: B is A. */
function matricesOf({ dtype, m, n, k, batch, transA, transB, sharesA, isVectors, isGram }) {
  const tensor = (rows, columns, seed, count = batch) => ({
    shape: isVectors ? [k] : count ? [count, rows, columns] : [rows, columns],
    data: randomArray(dtype, (count ?? 1) * rows * columns, seed),
  });
  const ofA = sharesA ? null : batch;
  return {
    a: transA ? tensor(k, m, 1, ofA) : tensor(m, k, 1, ofA),
    b: transB ? tensor(n, k, isGram ? 1 : 2) : tensor(k, n, 2),
  };
}

// --- wgemm ---------------------------------------------------------------------------------------

/** wgemm in a form of a case, on an instance. */
export function ownOn(wg, problem, form, data = dataOf(problem)) {
  if (problem.operation === 'qgemm') return qgemmOn(wg, { ...problem, ...form }, data);
  if (isInteger(problem.operation)) return integerOn(wg, problem, form, data);
  if (problem.operation === 'matmulNBits')
    return form.floats ? floatsOn(wg, problem, data) : nbitsOn(wg, problem, form, data);
  if (form.name === 'syrk') return syrkOn(wg, problem, data);
  if (problem.operation === 'matmul')
    return form.oneByOne ? gemmsOn(wg, problem, data) : matmulOn(wg, problem, data);
  return gemmOn(
    wg,
    problem,
    form,
    form.dtype ? matricesOf({ ...problem, dtype: form.dtype }) : data,
  );
}

const repeated = (call) => (times) => {
  for (let i = 0; i < times; ++i) call();
};

function inHeap(wg, dtype, { shape, data }) {
  const tensor = wg.alloc(dtype, shape);
  tensor.data.set(data);
  return tensor;
}

export function gemmOn(
  wg,
  { m, n, transA, transB, dtype: usual, arrays },
  { packed, as, dtype = usual, hasOut = false },
  { a, b },
) {
  const memory = memoryOf(wg, arrays);
  const x = memory.tensor(dtype, a);
  const w = packed
    ? memory.packed(dtype, b, { op: 'gemm', trans: transB, as })
    : memory.tensor(dtype, b);
  const out = hasOut
    ? { data: new a.data.constructor(m * n), shape: [m, n], dtype }
    : memory.result(dtype, [m, n]);
  // Most callers on arrays give no options.
  const isBare = arrays && !transA && !transB && !out;
  const options = isBare ? undefined : { transA, transB: packed ? false : transB, out };
  return wgemmCalls(wg, 'gemm', [x, w, null, options], memory);
}

function syrkOn(wg, { n, dtype }, { a }) {
  const memory = memoryOf(wg);
  const args = [memory.tensor(dtype, a), { out: memory.result(dtype, [n, n]) }];
  return wgemmCalls(wg, 'syrk', args, memory);
}

export function qgemmOn(
  wg,
  { typeOfA, typeOfB, typeOfY = 'float32', m, n, k, packed, arrays },
  { a, b, ...factors },
) {
  const memory = memoryOf(wg, arrays);
  const x = memory.tensor(typeOfA, { shape: [m, k], data: a });
  const plain = { shape: [k, n], data: b };
  const w = packed ? memory.packed(typeOfB, plain, { op: 'qgemm' }) : memory.tensor(typeOfB, plain);
  const args = [{ ...factors, a: x, b: w }, { out: memory.result(typeOfY, [m, n]) }];
  return wgemmCalls(wg, 'qgemm', args, memory);
}

function integerOn(wg, problem, { packed }, data) {
  const memory = memoryOf(wg);
  const x = memory.tensor(problem.typeOfA, data.a);
  const w = packed
    ? memory.packed(problem.typeOfB, data.b, { op: 'qgemm' })
    : memory.tensor(problem.typeOfB, data.b);
  const out = memory.result(typeOfResult(problem), [...data.a.shape.slice(0, -1), problem.n]);
  return wgemmCalls(wg, problem.operation, integerArguments(problem, data, x, w, out), memory);
}

function nbitsOn(wg, problem, { packed, level }, { a, weights }) {
  const memory = memoryOf(wg);
  const { data, scales } = weights;
  const w = packed
    ? memory.keep(wg.pack(weights, { op: 'matmulNBits' }))
    : {
        ...weights,
        data: memory.tensor('uint8', data),
        scales: memory.tensor('float32', scales),
      };
  const out = memory.result('float32', [problem.m, problem.n]);
  const x = memory.tensor('float32', a);
  return {
    ...wgemmCalls(wg, 'matmulNBits', [x, w, { accuracyLevel: level, out }], memory),
    tolerance: level === 4 ? toleranceOfLevel4(problem) : undefined,
  };
}

/** The same product by other weights: random ones in a format of blocks, at level 4. */
async function blocksOn(wg, problem, { format }, { a }) {
  const memory = memoryOf(wg);
  const { m, n, k } = problem;
  const bytes = blocksOf(format, problem);
  const w = memory.keep(await packFrom(wg, bytes, { type: format, shape: [n, k] }));
  const args = [memory.tensor('float32', a), w, { out: memory.result('float32', [m, n]) }];
  return wgemmCalls(wg, 'matmulNBits', args, memory);
}

/** The same product by float32 weights, packed. */
function floatsOn(wg, { m, n }, { a, weights }) {
  const memory = memoryOf(wg);
  const w = memory.packed('float32', dequantized(weights), { op: 'matmul', trans: true });
  const args = [memory.tensor('float32', a), w, null, { out: memory.result('float32', [m, n]) }];
  return wgemmCalls(wg, 'matmul', args, memory);
}

function wgemmCalls(wg, operation, args, memory) {
  let y;
  return {
    run: repeated(() => (y = wg[operation](...args))),
    plan: () => wg.explain(operation, ...args),
    result: () => y.data.slice(),
    dispose: memory.dispose,
  };
}

/** Where the operands of wgemm are: in its heap, or in plain arrays, with a new one per result. */
function memoryOf(wg, arrays) {
  const made = [];
  const keep = (handle) => (made.push(handle), handle);
  return {
    keep,
    tensor: (dtype, plain) => (arrays ? { ...plain, dtype } : keep(inHeap(wg, dtype, plain))),
    packed(dtype, plain, options) {
      const source = inHeap(wg, dtype, plain);
      const weights = wg.pack(source, options);
      source.dispose();
      return keep(weights);
    },
    result: (dtype, shape) => (arrays ? undefined : keep(wg.alloc(dtype, shape))),
    dispose: () => made.forEach((handle) => handle.dispose()),
  };
}

function matmulOn(wg, { dtype, batch, m, n, transB, isVectors, arrays }, { a, b }) {
  const memory = memoryOf(wg, arrays);
  const out = memory.result(dtype, isVectors ? [] : [batch, m, n]);
  const options = { transposeB: transB, out };
  const args = [memory.tensor(dtype, a), memory.tensor(dtype, b), null, options];
  return wgemmCalls(wg, 'matmul', args, memory);
}

/** The same stack by as many calls of gemm. */
function gemmsOn(wg, problem, data) {
  const part = ({ shape: [, rows, columns], data }, i) => ({
    shape: [rows, columns],
    data: data.subarray(i * rows * columns, (i + 1) * rows * columns),
  });
  const each = Array.from({ length: problem.batch }, (_, i) =>
    gemmOn(wg, problem, {}, { a: part(data.a, i), b: part(data.b, i) }),
  );
  return {
    run: repeated(() => each.forEach(({ run }) => run(1))),
    result: () => Float32Array.from(each.flatMap(({ result }) => [...result()])),
    dispose: () => each.forEach(({ dispose }) => dispose()),
  };
}

// --- peers ---------------------------------------------------------------------------------------

/** The loop that a program has without a library. */
function loopOf({ m, n, k, batch = 1, transB, sharesA }, { a, b }) {
  const y = new b.data.constructor(batch * m * n);
  const [stepK, stepN] = transB ? [1, k] : [n, 1];
  const [x, w] = [a.data, b.data];
  return {
    name: 'loop',
    run: repeated(() => {
      for (let each = 0, at = 0; each < batch; ++each) {
        const [ofA, ofB] = [sharesA ? 0 : each * m * k, each * k * n];
        for (let i = 0; i < m; ++i) {
          for (let j = 0; j < n; ++j, ++at) {
            let sum = 0;
            for (let l = 0; l < k; ++l) sum += x[ofA + i * k + l] * w[ofB + l * stepK + j * stepN];
            y[at] = sum;
          }
        }
      }
    }),
    result: () => y,
  };
}

async function peersOf(problem, data, { ort }) {
  const { operation, dtype, peers = allPeers } = problem;
  const contestants = peers.includes('loop') ? [loopOf(problem, data)] : [];
  if (peers.every((peer) => peer === 'loop'))
    return contestants.map((contestant) => ({ kind: 'peer', ...contestant }));
  const model = modelOf(problem, data);
  if (model && peers.includes('ORT')) contestants.push(await ortOn(ort, model, ['A', 'B'], 'ORT'));
  if (model && peers.includes('ORT, constant B'))
    contestants.push(await ortOn(ort, model, ['A'], 'ORT, constant B'));
  if (dtype === 'float32' && peers.includes('tfjs'))
    contestants.push(tfjsMatMul(data.a, data.b, problem));
  if (operation === 'gemm' && dtype !== 'bfloat16' && peers.includes('numpy-ts'))
    contestants.push(numpyOn(problem, data));
  return contestants.map((contestant) => ({ kind: 'peer', ...contestant }));
}

/**
 * The problem for ONNX Runtime, or undefined if it has no such operator. Its MatMul has no flags
 * for transposes: its operands are transposed before.
 */
function modelOf(problem, data) {
  const { operation, dtype, batch, m, n, transA, transB } = problem;
  if (operation === 'qgemm') return qgemmModel(problem, data);
  if (isInteger(operation)) return integerModel(problem, data);
  if (operation === 'matmulNBits') return nbitsModel(problem, data);
  if (!(dtype in ortOperator)) return undefined;
  const type = operation === 'matmul' ? 'MatMul' : ortOperator[dtype];
  const [a, b] = [data.a, data.b].map(({ shape, data }) => ({ dtype, shape, data }));
  const output = { dtype, shape: batch ? [batch, m, n] : [m, n] };
  if (type === 'Gemm') {
    const attributes = { ...(transA && { transA: 1 }), ...(transB && { transB: 1 }) };
    return {
      type,
      attributes,
      inputs: [
        { name: 'A', ...a },
        { name: 'B', ...b },
      ],
      output,
    };
  }
  return {
    type,
    inputs: [
      { name: 'A', dtype, ...(transA ? transposed(data.a) : data.a) },
      { name: 'B', dtype, ...(transB ? transposed(data.b) : data.b) },
    ],
    output,
  };
}

function qgemmModel({ typeOfA, typeOfB, typeOfY, m, n, k }, data) {
  if (typeOfA === 'int8' && typeOfB === 'uint8') return undefined;
  const arrays = { float32: Float32Array, int8: Int8Array, uint8: Uint8Array };
  const one = (name, dtype, value) =>
    value === null ? null : { name, dtype, shape: [], data: arrays[dtype].of(value) };
  const inputs = [
    { name: 'A', dtype: typeOfA, shape: [m, k], data: data.a },
    one('a_scale', 'float32', data.aScale),
    one('a_zero_point', typeOfA, data.aZeroPoint),
    { name: 'B', dtype: typeOfB, shape: [k, n], data: data.b },
    one('b_scale', 'float32', data.bScale),
    one('b_zero_point', typeOfB, data.bZeroPoint),
    null,
    one('y_scale', 'float32', data.yScale),
    one('y_zero_point', typeOfY, data.yZeroPoint),
  ];
  return {
    type: 'QGemm',
    domain: 'com.microsoft',
    inputs,
    output: { dtype: typeOfY, shape: [m, n] },
  };
}

/**
 * Tensors that run() does not pass are constants of the model, which ONNX Runtime Web prepacks if
 * it can. Session.run() copies the inputs into its heap and the result from there: it has no other
 * way.
 */
async function ortOn(ort, model, given, name) {
  const isGiven = (input) => given.includes(input?.name);
  const inputs = model.inputs.map((input) =>
    isGiven(input) ? { ...input, data: undefined } : input,
  );
  const session = await ort.createSession(encodeModel({ ...model, inputs }));
  const feeds = Object.fromEntries(
    model.inputs.filter(isGiven).map((input) => [input.name, ort.tensor(input)]),
  );
  let result;
  return {
    name,
    async run(times) {
      for (let i = 0; i < times; ++i) result = await session.run(feeds);
    },
    result: () => result.Y.data,
    dispose: () => session.release(),
  };
}

/**
 * numpy-ts keeps its arrays in a heap that does not grow. If that is full, it goes on outside,
 * slowly and inexactly. Its products of transposed integers are inexact and slow, so each call
 * makes them contiguous first, as its users would. Only a constant B is so before.
 */
function numpyOn({ dtype, transA, transB, packed, arrays }, { a, b }) {
  const isInteger = dtype.includes('int');
  /** @returns the matrix, and the arrays that it is made of */
  const matrix = ({ data, shape }, trans) => {
    const flat = np.frombuffer(data.buffer, dtype);
    const made = flat.reshape(...shape);
    return trans ? [np.transpose(made), made, flat] : [made, flat];
  };
  const dispose = (made) => new Set(made).forEach((array) => array?.dispose());
  const x = matrix(a, transA);
  const isConstant = isInteger && packed;
  const w = isConstant && transB ? matrix(transposed(b), false) : matrix(b, transB);
  const multiply = (left, right) => {
    if (!isInteger) return np.matmul(left, right);
    const contiguous = [
      transA ? np.ascontiguousarray(left) : left,
      transB && !isConstant ? np.ascontiguousarray(right) : right,
    ];
    const product = np.matmul(...contiguous);
    dispose(contiguous.filter((array) => array !== left && array !== right));
    return product;
  };
  let y;
  return {
    name: 'numpy-ts',
    run: repeated(() => {
      dispose([y]);
      if (!arrays) return void (y = multiply(x[0], w[0]));
      const given = packed ? [matrix(a, transA)] : [matrix(a, transA), matrix(b, transB)];
      y = multiply(given[0][0], (given[1] ?? w)[0]);
      y.data.slice(); // out of its heap
      dispose(given.flat());
    }),
    result: () => y.data,
    dispose: () => dispose([y, ...x, ...w]),
  };
}

// --- bounds --------------------------------------------------------------------------------------

/**
 * 'micro-kernel': the kernel that wgemm uses for the case, on packed panels. 'limit': the innermost
 * step of its type, in registers. 'scalar limit': the same without vectors, for int64. 'memory': B
 * is read, or both vectors, and nothing else. 'two at once': twice the product, in two processes.
 */
/** @param own wgemm in its first form: the bound 'micro-kernel' uses its kernel */
async function boundOf(bound, problem, { wg }, own) {
  if (bound === 'micro-kernel') return microKernelOf(wg.info.build, own.plan(), problem);
  if (bound === 'memory') return bandwidthOf(wg.info.build, problem);
  if (bound === 'scalar limit') return scalarLimitOf(wg.info.build);
  if (bound === 'two at once') return (await import('./two-at-once.mjs')).twoAtOnce(problem);
  return limitOf(wg.info.build, problem.dtype ?? stepOf(own.plan()));
}

/** The types that share kernels, and the multiply-adds per step of these. */
const steps = {
  float32: ['float32', 4],
  float16: ['float32', 4],
  bfloat16: ['float32', 4],
  float64: ['float64', 2],
  int32: ['int32', 4],
  uint32: ['int32', 4],
  int64: ['int64', 2],
  uint64: ['int64', 2],
  int8: ['int8', 8],
  dot: ['dot', 16],
  'masked dot': ['dot', 8], // two dot products of every other byte
  '7-bit dot': ['dot_7bit', 16],
};

/** The step of the 8-bit kernel that computes a plan. */
export function stepOf({ kernel }) {
  const [, variant] = /_dot_(.*)$/.exec(kernel) ?? [];
  if (!variant) return 'int8';
  return { signed_masked: 'masked dot', '7bit': '7-bit dot' }[variant] ?? 'dot';
}

/** @param dtype one of `steps` */
export async function limitOf(build, dtype, name = 'limit') {
  const program = await startProgram(build);
  const [type, products] = steps[dtype];
  return {
    name,
    kind: 'bound',
    operations: 2 * products * program._limit_steps(),
    run: (times) => program[`_limit_${type}`](times),
  };
}

async function scalarLimitOf(build) {
  const program = await startProgram(build);
  return {
    name: 'scalar limit',
    kind: 'bound',
    operations: 2 * program._limit_scalar_steps(),
    run: (times) => program._limit_int64_scalar(times),
  };
}

async function bandwidthOf(build, { dtype = 'int8', n, k, isVectors }) {
  const program = await startProgram(build);
  const elements = isVectors ? 2 * k : n * k;
  program._set_memory(elements * randomArray(dtype, 1).BYTES_PER_ELEMENT);
  return {
    name: 'memory',
    kind: 'bound',
    operations: 2 * n * k,
    run: (times) => program._read_memory(times),
    dispose: () => program._set_memory(0),
  };
}

/** All of a small product, a block of a large one. */
export async function microKernelOf(build, { kernel: name }, problem) {
  const program = await startProgram(build);
  const index = JSON.parse(program.UTF8ToString(program._describe())).kernels.findIndex(
    (kernel) => kernel.name === name,
  );
  const [m, n, k] = ['m', 'n', 'k'].map((axis) => Math.min(problem[axis], manyRows[axis]));
  program._set_product(m, n, k);
  return {
    name: 'micro-kernel',
    kind: 'bound',
    operations: 2 * m * n * k,
    run: (times) => program._run(index, times),
  };
}
