// Programs for the TypeScript compilers: what the declarations must accept, infer and refuse.

/** A program for an entry. Awaiting what is not a promise is allowed, so one text serves both. */
export const cases = (entry) => `
import {
  createGemm, type ${entry.endsWith('worker') ? 'Worker' : ''}QGemmInputs as Inputs,
} from '${entry}';
import type {
  DType, GemmArray, GemmOptions, MatMulOptions, Matrix, PackOptions, QGemmOptions, Tensor,
  TensorInput,
} from '${entry}';

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Passes if both are the very same type. */
function same<A, B>(_: Same<A, B>): void {}
// New arrays: from 5.7 on those over an ArrayBuffer.
type New32 = ReturnType<Float32Array['slice']>;
type New8 = ReturnType<Int8Array['slice']> | ReturnType<Uint8Array['slice']>;

const shape = [2, 2];
const f32 = { data: new Float32Array(4), shape };
const f64 = { data: new Float64Array(4), shape };
const i8 = { data: new Int8Array(4), shape };
const u8 = { data: new Uint8Array(4), shape };
const b16 = { data: new Uint16Array(4), shape, dtype: 'bfloat16' } as const;
const shared = { data: new Float32Array(new SharedArrayBuffer(16)), shape };
const named: TensorInput<Float32Array> = { ...f32, dtype: undefined, strides: undefined };
const quantized = { a: i8, aScale: 1, b: u8, bScale: 1 };

export async function absent(relu: boolean): Promise<void> {
  const none = undefined;
  const wg = await createGemm({
    threads: none, simd: none, determinism: none, models: none, assets: none,
    maxMemory: none,
  });
  const activation = relu ? 'relu' : none;
  const gemm = {
    alpha: none, beta: none, transA: none, transB: none, opset: none, broadcast: none,
  };
  await wg.gemm(f32, named, none, { ...gemm, activation, out: none });
  await wg.gemm(f32, f32, null, none);
  await wg.syrk(f32, { alpha: none, transA: none, out: none });
  await wg.matmul(f32, f32, none, {
    transposeA: none, transposeB: none, outType: none, activation, out: none,
  });
  await wg.qgemm(
    { ...quantized, aZeroPoint: none, bZeroPoint: none, c: null, yScale: none, yZeroPoint: none },
    { alpha: none, transA: none, transB: none, activation, out: none },
  );
  await wg.pack(f32, { op: 'gemm', trans: none, as: relu ? 'bfloat16' : none });
}

export async function shapes(): Promise<number> {
  const wg = await createGemm();
  const y = await wg.gemm(f32, f32);
  same<typeof y, Matrix<New32>>(true);
  const [m, n] = y.shape;
  const gram = await wg.syrk(f32);
  same<typeof gram, Matrix<New32>>(true);
  const q = await wg.qgemm(quantized);
  same<typeof q, Matrix<New32>>(true);
  const q8 = await wg.qgemm({ ...quantized, yScale: 1, yZeroPoint: 0 });
  same<typeof q8, Matrix<New8>>(true);
  const product = await wg.matmul(f32, f32);
  same<typeof product, Tensor<New32>>(true);
  // A product of stacks may have any number of axes.
  same<typeof product.shape, readonly number[]>(true);
  return m * n + q.shape[0] * q8.shape[1];
}

export async function packing(options: PackOptions): Promise<void> {
  const wg = await createGemm();
  const held = await wg.alloc('float32', shape);
  await wg.pack(f32, options);
  await wg.pack(i8, options);
  await wg.pack(held, { op: 'matmul', as: 'float16' });
  await wg.pack(f64, { op: 'gemm', as: 'float64' });
  await wg.pack(b16, { op: 'gemm', as: 'bfloat16' });
  await wg.pack(i8, { op: 'qgemm', as: 'int8' });
  await wg.gemm(b16, await wg.pack(b16, { op: 'gemm' }));
  await wg.gemm(f32, await wg.pack(f32, { op: 'gemm', as: 'bfloat16' }));
  // @ts-expect-error: int8 is for qgemm
  await wg.pack(i8, { op: 'gemm' });
  // @ts-expect-error: uint8 is for qgemm
  await wg.pack(u8, { op: 'matmul' });
  // @ts-expect-error: qgemm takes 8 bits
  await wg.pack(f32, { op: 'qgemm' });
  // @ts-expect-error: qgemm takes 8 bits
  await wg.pack(f32, { op: 'qgemm', as: 'int8' });
  // @ts-expect-error: only float32 is packed as another type
  await wg.pack(f64, { op: 'gemm', as: 'float16' });
  // @ts-expect-error: only float32 is packed as another type
  await wg.pack(b16, { op: 'gemm', as: 'float32' });
  // @ts-expect-error: not as a wider type
  await wg.pack(f32, { op: 'gemm', as: 'float64' });
  // @ts-expect-error: the array has another type
  await wg.pack({ ...f32, dtype: 'float64' as const }, { op: 'gemm' });
  // @ts-expect-error: int8 is for qgemm
  await wg.gemm(i8, i8);
  // @ts-expect-error: uint8 is for qgemm
  await wg.matmul(u8, u8);
  // @ts-expect-error: syrk takes float32 and float64
  await wg.syrk(u8);
}

export async function variables(inputs: Inputs, relu: boolean): Promise<void> {
  const wg = await createGemm();
  const [held, held64] = [await wg.alloc('float32', shape), await wg.alloc('float64', shape)];
  const options: GemmOptions = { transB: true, activation: relu ? 'relu' : undefined };
  const y = await wg.gemm(f32, f32, null, options);
  same<typeof y, Matrix<New32>>(true);
  const matmul: MatMulOptions = { transposeB: true };
  const product = await wg.matmul(f32, f32, null, matmul);
  same<typeof product, Tensor<New32>>(true);
  const qgemm: QGemmOptions = { transB: true };
  const q = await wg.qgemm(quantized, qgemm);
  same<typeof q, Matrix<New32>>(true);
  const any = await wg.qgemm(inputs, qgemm);
  same<typeof any, Matrix<New32 | New8>>(true);

  const filling = { out: held };
  const filled = [
    await wg.gemm(f32, f32, null, filling), await wg.matmul(f32, f32, null, filling),
    await wg.qgemm(quantized, filling), await wg.qgemm(inputs, filling),
  ] as const;
  same<typeof filled, readonly [typeof held, typeof held, typeof held, typeof held]>(true);
  const perhaps = await wg.gemm(f32, f32, null, { out: relu ? held : undefined });
  same<typeof perhaps, typeof held | Matrix<New32>>(true);
  const toF32: [
    GemmOptions<Float32Array>, MatMulOptions<Float32Array>, QGemmOptions<Float32Array>,
  ] = [{ out: f32 }, { out: f32, outType: 'float32' }, { out: f32 }];
  const data: Float32Array[] = [
    (await wg.gemm(f32, f32, null, toF32[0])).data,
    (await wg.matmul(f32, f32, null, toF32[1])).data, (await wg.qgemm(quantized, toF32[2])).data,
  ];
  same<typeof data, Float32Array[]>(true);

  // @ts-expect-error: types must agree
  await wg.gemm(f32, f64, null, options);
  // @ts-expect-error: types must agree
  await wg.gemm(f32, f32, f64, options);
  // @ts-expect-error: types must agree
  await wg.gemm(f32, held64);
  // @ts-expect-error: types must agree
  await wg.gemm(f64, f64, null, filling);
  // @ts-expect-error: types must agree
  await wg.gemm(f64, f64, null, toF32[0]);
  // @ts-expect-error: types must agree
  await wg.gemm(f32, f32, null, { out: held64 });
  // @ts-expect-error: types must agree
  await wg.matmul(f32, f64, null, matmul);
  // @ts-expect-error: types must agree
  await wg.matmul(f32, f32, f64, matmul);
  // @ts-expect-error: types must agree
  await wg.matmul(f64, f64, null, toF32[1]);
  // @ts-expect-error: types must agree
  await wg.matmul(f32, f32, null, { out: held64 });
  // @ts-expect-error: a result is float32 or has 8 bits
  await wg.qgemm(inputs, { out: held64 });
  // @ts-expect-error: without yScale the result is float32
  await wg.qgemm(quantized, { out: i8 });
  // @ts-expect-error: with yScale the result has 8 bits
  await wg.qgemm({ ...quantized, yScale: 1, yZeroPoint: 0 }, { out: f32 });
}

export async function types(): Promise<void> {
  const wg = await createGemm();
  const held = await wg.alloc('float32', shape);
  const wide = await wg.matmul(b16, b16, null, { outType: 'float32' });
  same<typeof wide, Tensor<New32>>(true);
  const filled = await wg.matmul(b16, b16, null, { outType: 'float32', out: held });
  same<typeof filled, typeof held>(true);
  await wg.matmul(f32, f32, null, { outType: 'float32' });
  await wg.matmul(f64, f64, null, { outType: 'float64' });
  await wg.matmul(b16, b16, null, { outType: 'bfloat16' });
  const dtype: 'float32' = (await wg.gemm(f32, f32)).dtype;
  await wg.gemm(
    { data: new Uint16Array(4), shape, dtype: 'float16' }, b16, await wg.gemm(b16, b16),
  );
  // @ts-expect-error: only 16 bits can be widened
  await wg.matmul(f64, f64, null, { outType: 'float32' });
  // @ts-expect-error: never narrowed
  await wg.matmul(f32, f32, null, { outType: 'bfloat16' });
  // @ts-expect-error: never widened to float64
  await wg.matmul(f32, f32, null, { outType: 'float64' });
  // @ts-expect-error: the array has another type
  const wrong: TensorInput<Float32Array> = { ...f32, dtype: 'int8' };
  // @ts-expect-error: the array has another type
  await wg.gemm({ data: new Float32Array(4), shape, dtype: 'int8' }, f32);
  // @ts-expect-error: the array has another type
  await wg.gemm(f32, { data: new Float32Array(4), shape, dtype: 'bfloat16' });
  // @ts-expect-error: a Uint16Array holds 16 bits
  await wg.gemm({ data: new Uint16Array(4), shape, dtype: 'float32' }, b16);
  void [dtype, wrong];
}

export async function buffers(): Promise<New32> {
  const wg = await createGemm();
  const held = await wg.alloc('float32', shape);
  const y = await wg.gemm(f32, shared, named);
  same<typeof y, Matrix<New32>>(true);
  const fromShared = await wg.gemm(shared, f32, shared);
  same<typeof fromShared, Matrix<New32>>(true);
  const toShared = await wg.gemm(f32, named, null, { out: shared });
  same<typeof toShared, typeof shared>(true);
  const own = await wg.gemm(shared, f32, null, { out: f32 });
  same<typeof own, typeof f32>(true);
  await wg.matmul(shared, f32, named, { out: held });
  await wg.qgemm({
    ...quantized, a: { data: new Int8Array(new SharedArrayBuffer(4)), shape }, bScale: shared.data,
  });
  return (await wg.matmul(held, shared, f32)).data;
}

/** Functions over several types. */
export async function generic<A extends GemmArray>(
  x: TensorInput<A>, some: TensorInput,
): Promise<DType> {
  const wg = await createGemm();
  await wg.gemm(x, x, x, { beta: 2 });
  await wg.gemm(x, x, null, { out: x });
  await wg.matmul(x, x, x, { activation: 'relu' });
  return (await wg.gemm(some, some, some, { out: some })).dtype ?? 'float32';
}
`;

/** A program with the handles of both entries. */
export const handles = `
import { type Gemm, HeapTensor, PackedWeights, Recording } from 'wgemm';
import { WorkerObject, WorkerRecording, WorkerTensor, WorkerWeights } from 'wgemm/worker';

export function narrowed(x: unknown): number {
  if (x instanceof HeapTensor) return x.data.length;
  if (x instanceof PackedWeights) return x.byteLength;
  if (x instanceof Recording || x instanceof WorkerRecording) return x.length;
  if (x instanceof WorkerTensor || x instanceof WorkerWeights) return x.shape.length;
  return x instanceof WorkerObject && x.disposed ? 1 : 0;
}
export const exported = (wg: Gemm, x: HeapTensor<Float32Array>) => ({
  y: wg.gemm(x, x), packed: wg.pack(x, { op: 'gemm' }), sum: wg.matmul(x, x, null, { out: x }),
});
export const ofView = (wg: Gemm, data: HeapTensor<Float32Array>): Float32Array =>
  wg.gemm({ data, shape: [2, 2] }, { data: new Float32Array(4), shape: [2, 2] }).data;
// @ts-expect-error: alloc() makes it
new HeapTensor();
// @ts-expect-error: pack() makes it
new PackedWeights();
// @ts-expect-error: record() makes it
new Recording();
// @ts-expect-error: record() makes it
new WorkerRecording();
// @ts-expect-error: alloc() makes it
new WorkerTensor();
// @ts-expect-error: pack() makes it
new WorkerWeights();
// @ts-expect-error: instances make handles
new WorkerObject();
`;

/** A program with layers, here and in a worker. */
export const layers = `
import { createGemm, quantize, type TensorLike } from 'wgemm';
import { createLinear, deserializeLinear, type Linear } from 'wgemm/linear';
import { createGemm as startWorker, createLinear as createInWorker } from 'wgemm/worker';

type F32 = TensorLike<Float32Array>;
export async function use(weights: F32, bias: F32, x: F32, is8Bit: boolean): Promise<Float32Array> {
  const wg = await createGemm();
  const layer: Linear = createLinear(wg, {
    weights, bias, as: 'bfloat16', activation: is8Bit ? 'relu' : undefined,
  });
  const either = createLinear(wg, { weights, as: is8Bit ? 'int8' : 'float32' });
  const input = quantize({ data: Float32Array.of(0, 1), shape: [2] });
  const first = createLinear(wg, { weights, as: 'int8', input, output: input });
  const q: Int8Array | Uint8Array = first.run(x).data;
  const y: Float32Array = createLinear(wg, { weights, as: 'int8' }).run(layer.run(x)).data;
  const again: Float32Array = deserializeLinear(wg, layer.serialize()).run(x, { out: x }).data;
  const inWorker = await createInWorker(await startWorker(), { weights, as: 'int8' });
  const z: Float32Array = (await inWorker.run(x)).data;
  // @ts-expect-error: float16 is not a type of a layer with input
  createLinear(wg, { weights, as: 'float16', input });
  // @ts-expect-error: activation is none
  createLinear(wg, { weights, activation: 'tanh' });
  // @ts-expect-error: it takes float32
  layer.run({ data: Float64Array.of(1), shape: [1, 1] });
  return [y, again, z].find(({ length }) => length > q.length + either.inputs) ?? y;
}
`;

/** A program with indexes, here and in a worker. */
export const indexes = `
import { createGemm } from 'wgemm';
import { createIndex, deserializeIndex, type Match, type VectorIndex } from 'wgemm/search';
import {
  createGemm as startWorker, createIndex as createInWorker, type WorkerVectorIndex,
} from 'wgemm/worker';

export async function use(data: Float32Array, bytes: Uint8Array): Promise<number> {
  const wg = await createGemm();
  const index: VectorIndex<string> = createIndex(wg, {
    dimensions: 3, metric: 'dot', dtype: 'int8', rescore: 'bfloat16', capacity: 9,
  });
  const first: number = index.add(data, ['a', 'b']);
  index.update({ data, shape: [2, 3] }, ['a', 'b']);
  const one: Match<string>[] = index.search([1, 2, 3], 2, {
    filter: (id, position) => id.length > position, minScore: 0.5, candidates: 20, fast: true,
  });
  const two: Match<string>[] = index.search({ data, shape: [3] }, 2, { filter: new Set(['a']) });
  const many: Match<string>[][] = index.search({ data, shape: [2, 3] }, 2);
  const shape: number[] = [3];
  const either: Match<string>[] | Match<string>[][] = index.search({ data, shape }, 2);
  const out = { positions: new Uint32Array(4), scores: new Float32Array(4) };
  const found: number = index.search({ data, shape: [2, 3] }, 2, { out });
  const id: string | undefined = index.idOf(0);
  const sums: Float32Array = index.maxSim(data, Uint32Array.of(1), { out: new Float32Array(1) });
  const plain = deserializeIndex(wg, index.serialize());
  const ids: number[] = plain.search(data, 1).map((match) => match.id);
  const there: WorkerVectorIndex = await createInWorker(await startWorker(), { dimensions: 3 });
  const far: Match[] = await there.search(data, 1, { filter: Uint32Array.of(1) });
  // @ts-expect-error: no such metric
  createIndex(wg, { dimensions: 3, metric: 'l2' });
  // @ts-expect-error: its ids are strings
  index.add(data, [1, 2]);
  // @ts-expect-error: a worker takes no function
  await there.search(data, 1, { filter: () => true });
  index.dispose();
  return first + one.length + two.length + many.length + either.length + found + sums.length +
    ids.length + far.length + bytes.length + (id ?? '').length;
}
`;

/** Models. */
export const models = `
import { createGemm } from 'wgemm';
import { loadModel, type Model, type OnnxModel, readOnnx } from 'wgemm/onnx';
import { createGemm as startWorker } from 'wgemm/worker';

export async function use(bytes: Uint8Array, x: Float32Array): Promise<number> {
  const read: OnnxModel = await readOnnx(bytes, {
    externalData: ({ location, offset, length }) =>
      bytes.subarray(offset, offset + length + location.length),
  });
  for (const node of read.graph.nodes) {
    const axis = node.attributes.get('axis');
    const weights = read.graph.initializers.get(node.inputs[1] ?? '');
    if (typeof axis === 'number' && weights?.data) return axis;
  }
  const model: Model = await loadModel(read, { threads: 2 });
  const inWorker = await loadModel(bytes, { wg: await startWorker() });
  const here = await loadModel(bytes.slice().buffer, { wg: await createGemm() });
  const results = await model.run({ x: { data: x, shape: [1, x.length] } });
  const products = await inWorker.explain({ x: [1, 2] });
  // @ts-expect-error: an instance has its threads
  await loadModel(bytes, { wg: await createGemm(), threads: 2 });
  // @ts-expect-error: it loads that module by itself
  await loadModel(bytes, { models: true });
  // @ts-expect-error: a shape is missing
  await here.run({ x: { data: x } });
  // @ts-expect-error: no bytes
  await readOnnx('model.onnx');
  return (results['y']?.data.length ?? 0) + products.length;
}
`;

/** Files of weights. */
export const weights = `
import { createGemm, fromGGUF } from 'wgemm';
import {
  packFrom, readGGUF, readSafetensors, type StreamLike, type WeightsSource, type WeightsTensor,
} from 'wgemm/weights';
import { createGemm as startWorker, type Signal } from 'wgemm/worker';

export async function use(
  source: WeightsSource, bytes: Uint8Array, stream: StreamLike, signal: Signal,
): Promise<number> {
  const wg = await createGemm();
  const file = await readGGUF(source);
  const heads = file.metadata.get('llama.attention.head_count');
  const { type, data, shape } = await file.tensor('w');
  if (type === 'Q4_0') wg.pack(fromGGUF({ type, data, shape }), { op: 'matmulNBits' });
  const other = await readSafetensors((offset, length) => bytes.subarray(offset, offset + length));
  const tensor: WeightsTensor = await other.tensor('w');
  if (tensor.type === 'BF16') wg.pack(tensor, { op: 'matmul', trans: true });
  const packed = wg.pack(tensor.toFloat32(), { op: 'matmul' });
  const x = { data: new Float32Array(256), shape: [1, 256] };
  const kept = await packFrom(wg, file, 'w', { signal });
  if (kept.format === 'Q4_K') wg.matmulNBits(x, kept);
  const inWorker = await startWorker();
  const inItsMemory = await packFrom(inWorker, other, 'w', { as: 'float16' });
  await inWorker.matmul(x, inItsMemory);
  wg.matmul(x, await packFrom(wg, stream, { type: 'F32', shape: [2, 256] }));
  for await (const { data, shape } of file.rows('w')) wg.matmul(x, { data, shape });
  // @ts-expect-error: weights in a worker are not weights here
  wg.matmul(x, inItsMemory);
  // @ts-expect-error: the place of the tensor is missing
  await packFrom(wg, bytes);
  // @ts-expect-error: a tensor of any type is not an operand
  wg.pack(tensor, { op: 'matmul' });
  // @ts-expect-error: not a source
  await readGGUF(7);
  return packed.byteLength + (typeof heads === 'number' ? heads : 0);
}
`;

/**
 * A program with tfjs. Its types are written out here, as tfjs-core 4 has them, since tfjs' own
 * declarations compile only in some settings. The program of the guide compiles with those.
 */
export const tfjs = `
import { createGemm } from 'wgemm';
import { install, type InstallOptions, type Tfjs } from 'wgemm/tfjs';
import { createGemm as startWorker } from 'wgemm/worker';

interface TensorInfo { dataId: object; shape: number[]; dtype: 'float32' | 'int32' | 'bool' }
interface KernelConfig {
  kernelName: string;
  backendName: string;
  kernelFunc: (params: {
    inputs: { [name: string]: TensorInfo };
    backend: {};
    attrs?: { [name: string]: number | boolean | string };
  }) => TensorInfo | TensorInfo[];
  setupFunc?: (backend: {}) => void;
  disposeFunc?: (backend: {}) => void;
}
declare const tf: {
  getKernel: (kernelName: string, backendName: string) => KernelConfig;
  registerKernel: (config: KernelConfig) => void;
  unregisterKernel: (kernelName: string, backendName: string) => void;
  matMul: (a: TensorInfo, b: TensorInfo) => TensorInfo;
};

export async function use(options?: InstallOptions): Promise<Tfjs> {
  const remove: () => void = await install(tf, options);
  remove();
  await install(tf);
  await install(tf, { threads: 'auto', always: true, determinism: 'strict' });
  await install(tf, { wg: await createGemm() });
  // @ts-expect-error: there is no such option
  await install(tf, { thread: 1 });
  // @ts-expect-error: kernels cannot wait for a worker
  await install(tf, { wg: await startWorker() });
  // @ts-expect-error: a function is missing
  await install({ getKernel: tf.getKernel });
  return tf;
}
`;
