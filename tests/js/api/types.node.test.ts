/**
 * The declarations in dist/, as TypeScript of users sees them: the types that it infers, the calls
 * that it refuses, and the oldest version that works.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
// In the repository, so that TypeScript finds `wgemm` as it does for a user of the package.
const folder = join(root, 'build', 'types');

/** What a strict compiler, without types of Node, says of a program. */
function compile(name: string, program: string, lib: string[]): string[] {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name}.mts`);
  writeFileSync(file, program);
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    target: ts.ScriptTarget.ES2020,
    module: ts.ModuleKind.NodeNext,
    lib: lib.map((part) => `lib.${part}.d.ts`),
    types: [],
    exactOptionalPropertyTypes: true,
  };
  return ts.getPreEmitDiagnostics(ts.createProgram([file], options)).map((diagnostic) => {
    const line = diagnostic.file?.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line;
    return `${line === undefined ? '' : `line ${line + 1}: `}${ts.flattenDiagnosticMessageText(diagnostic.messageText, ' ')}`;
  });
}

const oldest = ['es2020', 'dom'];

it('the declarations compile with ES2020 and the DOM alone, and infer what a call gives', () => {
  const program = `
    import {
      ArgumentError, createGemm, DisposedError, DTypeError, Gemm, GemmError, HeapTensor, OpsetError, OutOfMemoryError, ShapeError,
      UnsupportedError, version,
    } from 'wgemm';
    import type {
      ArrayOf, Assets, CreateOptions, DataArray, DType, ErrorCode, Explanation, Float16ArrayLike, GemmArray, GemmOptions, Info, KernelInfo, Matrix, ResultArray, Tensor, TensorInput, TensorLike,
    } from 'wgemm';

    /** Passes where both are the very same type. */
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    function same<A, B>(_: Same<A, B>) {}
    /** Arrays of results. */
    type New32 = ReturnType<Float32Array['slice']>;
    type New8 = ReturnType<(Int8Array | Uint8Array)['slice']>;

    const wg = await createGemm({ threads: 'auto', simd: 'simd128', determinism: 'fast', models: true, maxMemory: 1e9, assets: (file) => new URL(file) });
    same<typeof wg, Gemm>(true);

    const a: TensorInput<Float32Array> = { data: new Float32Array(6), shape: [2, 3], strides: [3, 1] };
    const b: TensorInput<Float32Array> = { data: new Float32Array(6), shape: [3, 2], dtype: 'float32' };
    const i: TensorInput<Int32Array> = { data: new Int32Array(4), shape: [2, 2] };

    // The result's type follows the arrays.
    same<ReturnType<typeof first>, Matrix<New32>>(true);
    function first() { return wg.gemm(a, b); }
    const floats: Float32Array = wg.gemm(a, b, null, { alpha: 0.5, transA: false, transB: 0 }).data;
    const ints: Int32Array = wg.gemm(i, i, 3).data;
    // @ts-expect-error: an array of int32 is none of float32
    const wrong: Float32Array = wg.gemm(i, i).data;
    const literal: Tensor<Float32Array> = wg.gemm({ data: new Float32Array(1), shape: [1, 1] }, { data: new Float32Array(1), shape: [1, 1] });
    const shape: readonly number[] = wg.gemm(a, b, 5).shape;
    const dtype: DType = wg.gemm(a, b, undefined).dtype;

    // A tensor of the heap has the array of its type, and goes wherever a tensor goes.
    const heap = wg.alloc('float32', [2, 2]);
    same<typeof heap, HeapTensor<Float32Array>>(true);
    const heapInts: HeapTensor<Int32Array> = wg.alloc('int32', [2, 2] as const);
    const view: Float32Array = heap.data;
    wg.gemm(heap, heap, heap);
    wg.gemm(a, heap);

    // What is given as out comes back, as it was given.
    const out = wg.gemm(a, b, null, { out: heap });
    same<typeof out, HeapTensor<Float32Array>>(true);
    const tagged = wg.gemm(a, b, heap, { out: { data: new Float32Array(4), shape: [2, 2], tag: 1 } });
    const tag: number = tagged.tag;

    // A result is an input of the next call.
    wg.gemm(wg.gemm(a, b), wg.gemm(a, b), null, { out: wg.gemm(a, b) });

    const plan: Explanation = wg.explain('gemm', a, b, 1, { alpha: 2, out: heap });
    const info: Info = wg.info;
    const kernels: readonly KernelInfo[] = info.kernels;
    const { inUse, committed }: { inUse: number; committed: number } = wg.memory();
    const text: string = version;
    wg.dispose();
    heap.dispose();

    // One function over both types.
    function twice<A extends GemmArray>(x: TensorLike<A>): Matrix<ResultArray<A>> { return wg.gemm(x, x, x, { beta: 2 }); }
    function each(f32: Float32Array, f64: Float64Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array, bits: Uint16Array) {
      const shape = [1, 1];
      const results: [Tensor<Float32Array>, Tensor<Float64Array>, Tensor<Uint32Array>, Tensor<BigInt64Array>, Tensor<BigUint64Array>] = [
        twice({ data: f32, shape }), twice({ data: f64, shape }), twice({ data: u32, shape }), twice({ data: i64, shape }),
        twice({ data: u64, shape }),
      ];
      // 16 bits: float16 comes back as a Float16Array if the engine has one.
      const halves: Uint16Array | Float16ArrayLike = twice({ data: bits, shape, dtype: 'float16' }).data;
      // @ts-expect-error: it may be a Float16Array
      const sameBits: Uint16Array = twice({ data: bits, shape, dtype: 'bfloat16' }).data;
      // bigints, for the types that they are for
      wg.gemm({ data: i64, shape }, { data: i64, shape }, 3n, { alpha: 2n, beta: -1n });
    }
    const heaps: [HeapTensor<Float64Array>, HeapTensor<BigUint64Array>, HeapTensor<Uint16Array>, HeapTensor<Float16ArrayLike | Uint16Array>] =
      [wg.alloc('float64', [1]), wg.alloc('uint64', [1]), wg.alloc('bfloat16', [1]), wg.alloc('float16', [1])];
    same<ArrayOf<'int32'>, Int32Array>(true);

    // @ts-expect-error: types must agree
    wg.gemm(a, i);
    // @ts-expect-error: types must agree
    wg.gemm(a, b, i);
    // @ts-expect-error: types must agree
    wg.gemm(a, b, null, { out: i });
    // @ts-expect-error: an array is not a tensor
    wg.gemm(new Float32Array(4), b);
    // @ts-expect-error: a shape is needed
    wg.gemm({ data: new Float32Array(4) }, b);
    // @ts-expect-error: not an array of any type
    wg.gemm({ data: new Int16Array(4), shape: [2, 2] }, { data: new Int16Array(4), shape: [2, 2] });
    // @ts-expect-error: plain arrays are not data
    wg.gemm({ data: [1, 2, 3, 4], shape: [2, 2] }, b);
    // @ts-expect-error: not a type
    wg.alloc('Float32', [1]);
    // @ts-expect-error: not a shape
    wg.alloc('float32', 5);
    // @ts-expect-error: no such option
    wg.gemm(a, b, null, { transa: true });
    // @ts-expect-error: not a number
    wg.gemm(a, b, null, { alpha: '1' });
    // @ts-expect-error: a result's shape is not to be changed
    wg.gemm(a, b).shape[0] = 5;
    // @ts-expect-error: a tensor's array is not to be replaced
    heap.data = new Float32Array(4);
    // @ts-expect-error: there is no such operation
    wg.explain('conv', a, b);
    // @ts-expect-error: no such option
    await createGemm({ thread: 1 });
    // @ts-expect-error: no such build
    await createGemm({ simd: 'avx' });
    // @ts-expect-error: a promise is not an instance
    createGemm().gemm(a, b);

    try {
      wg.gemm(a, b);
    } catch (error) {
      if (error instanceof GemmError) {
        const code: ErrorCode = error.code;
        const names: string = error.op + error.argument + error.message;
        // @ts-expect-error: no such code
        if (error.code === 'NOPE') throw error;
        if (error.code === 'OUT_OF_MEMORY' || error.code === 'LOAD') throw error;
      }
    }
    const errors: (new (op: string, argument: string, message: string) => GemmError)[] = [
      ArgumentError, DisposedError, DTypeError, OpsetError, OutOfMemoryError, ShapeError, UnsupportedError,
    ];
  `;
  expect(compile('oldest', inFunction(program), oldest)).toEqual([]);
});

/**
 * Top-level await needs a module of ES2022, which old targets lack. So the code after the imports
 * becomes one function.
 */
function inFunction(program: string): string {
  const imports = program.slice(0, program.indexOf('/** Passes'));
  return `${imports}\nasync function main() {\n${program.slice(imports.length)}\n}\nvoid main;`;
}

it('the types of qgemm, pack and quantize fit each other, and infer what a call gives', () => {
  const program = `
    import { createGemm, dequantize, HeapTensor, PackedWeights, PackMismatchError, GemmError, quantize, quantizeBias } from 'wgemm';
    import type {
      Explanation, PackOptions, QGemmInputs, QGemmOptions, Quantized, QuantizedArray, QuantizedBias, QuantizedInput, Matrix, Scale, Tensor, TensorInput,
      ZeroPoint,
    } from 'wgemm';

    /** Passes where both are the very same type. */
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    function same<A, B>(_: Same<A, B>) {}
    /** Arrays of results. */
    type New32 = ReturnType<Float32Array['slice']>;
    type New8 = ReturnType<(Int8Array | Uint8Array)['slice']>;

    const wg = await createGemm();
    const a: TensorInput<Uint8Array> = { data: new Uint8Array(6), shape: [2, 3] };
    const b: TensorInput<Int8Array> = { data: new Int8Array(6), shape: [3, 2], strides: [2, 1] };
    const floats: TensorInput<Float32Array> = { data: new Float32Array(6), shape: [3, 2] };

    // Without yScale float32; with it one of the 8-bit types; and any where it may be there.
    const y = wg.qgemm({ a, aScale: 1, b, bScale: 1 });
    same<typeof y, Matrix<New32>>(true);
    const alsoFloat = wg.qgemm({ a, aScale: 1, b, bScale: 1, yScale: null, yZeroPoint: null }, { alpha: 2 });
    same<typeof alsoFloat, Matrix<New32>>(true);
    const quantized = wg.qgemm({ a, aScale: 1, b, bScale: 1, yScale: 1, yZeroPoint: 0 });
    wg.qgemm({ a: quantized, aScale: 1, b, bScale: 1 });
    same<typeof quantized, Matrix<New8>>(true);
    // @ts-expect-error: which of them is not known
    const wrong: Uint8Array = quantized.data;
    if (quantized.data instanceof Int8Array) { const narrowed: Int8Array = quantized.data; }
    function any(inputs: QGemmInputs, options: QGemmOptions): Tensor<Float32Array | QuantizedArray> { return wg.qgemm(inputs, options); }

    // Scales and zero points in every form.
    const scales: Scale[] = [1, new Float32Array(1), { data: new Float32Array(2), shape: [2] }, wg.alloc('float32', [])];
    const zeroPoints: ZeroPoint[] = [1, new Int8Array(1), new Uint8Array(1), { data: new Int8Array(2), shape: [2] }, wg.alloc('uint8', [])];
    for (const bScale of scales) for (const bZeroPoint of zeroPoints) wg.qgemm({ a, aScale: bScale, b, bScale, bZeroPoint });
    wg.qgemm({ a, aScale: 1, aZeroPoint: null, b, bScale: 1, bZeroPoint: null, c: { data: new Int32Array(2), shape: [2] } });
    wg.qgemm({ a, aScale: 1, b, bScale: 1, c: 5 }, { transA: 1, transB: false });
    wg.qgemm({ a: wg.alloc('int8', [2, 2]), aScale: 1, b: wg.alloc('uint8', [2, 2]), bScale: 1, c: wg.alloc('int32', []) });

    // What is given as out comes back, as it was given.
    const out = wg.alloc('int8', [2, 2]);
    const filled = wg.qgemm({ a, aScale: 1, b, bScale: 1, yScale: 1, yZeroPoint: new Int8Array(1) }, { out });
    same<typeof filled, HeapTensor<Int8Array>>(true);
    const tag: number = wg.qgemm({ a, aScale: 1, b, bScale: 1 }, { out: { data: new Float32Array(4), shape: [2, 2], tag: 1 } }).tag;

    // Packed weights stand where b does.
    const options: PackOptions = { op: 'qgemm', trans: true };
    const weights: PackedWeights = wg.pack(b, options);
    const packedY = wg.qgemm({ a, aScale: 1, b: weights, bScale: 1 });
    same<typeof packedY, Matrix<New32>>(true);
    const inputs: QGemmInputs = { a, aScale: 1, b: weights, bScale: scales[0] ?? 1 };
    const op: 'gemm' | 'qgemm' | 'matmulNBits' = weights.op;
    const [bytes, rows, gone]: [number, number | undefined, boolean] = [weights.byteLength, weights.shape[0], weights.disposed];
    weights.dispose();
    const plan: Explanation = wg.explain('qgemm', inputs, { alpha: 2 });
    const which: string = plan.op;

    // What quantize makes fits.
    const qa = quantize(floats);
    same<typeof qa, Quantized<'uint8'>>(true);
    const qb = quantize(floats, { symmetric: true, axis: 1 });
    same<typeof qb, Quantized<'int8', 1>>(true);
    const c = quantizeBias({ data: new Float32Array(2), shape: [2] }, { aScale: qa.scale, bScale: qb.scale });
    same<typeof c, QuantizedBias<Float32Array>>(true);
    const whole = wg.qgemm({ a: qa, aScale: qa.scale, aZeroPoint: qa.zeroPoint, b: qb, bScale: qb.scale, bZeroPoint: qb.zeroPoint, c });
    same<typeof whole, Matrix<New32>>(true);
    wg.qgemm({ a: qa, aScale: qa.scale, b: wg.pack(qb, { op: 'qgemm' }), bScale: qb.scale, yScale: qa.scale, yZeroPoint: qb.zeroPoint });
    const back: QuantizedInput = qb;
    const floatsAgain: Float32Array = dequantize(back).data;
    const error: GemmError = new PackMismatchError('qgemm', 'B', 'text');

    // @ts-expect-error: float32 is quantized first
    wg.qgemm({ a: floats, aScale: 1, b, bScale: 1 });
    // @ts-expect-error: float32 is quantized first
    wg.pack(floats, { op: 'qgemm' });
    // @ts-expect-error: packed already
    wg.pack(weights, { op: 'qgemm' });
    // @ts-expect-error: an operation is needed
    wg.pack(b);
    // @ts-expect-error: an operation is needed
    wg.pack(b, {});
    // @ts-expect-error: no such operation
    wg.pack(b, { op: 'conv' });
    // @ts-expect-error: weights can only stand for B
    wg.qgemm({ a: weights, aScale: 1, b, bScale: 1 });
    // @ts-expect-error: a tensor that looks like it is none
    wg.qgemm({ a, aScale: 1, b: { op: 'qgemm', dtype: 'int8', shape: [3, 2], byteLength: 6 }, bScale: 1 });
    // @ts-expect-error: scales are needed
    wg.qgemm({ a, b });
    // @ts-expect-error: zero points are integers
    wg.qgemm({ a, aScale: 1, aZeroPoint: new Float32Array(1), b, bScale: 1 });
    // @ts-expect-error: scales are float32
    wg.qgemm({ a, aScale: new Float64Array(1), b, bScale: 1 });
    // @ts-expect-error: C is int32
    wg.qgemm({ a, aScale: 1, b, bScale: 1, c: floats });
    // @ts-expect-error: no such input
    wg.qgemm({ a, aScale: 1, b, bScale: 1, zeroPoint: 1 });
    // @ts-expect-error: no beta
    wg.qgemm({ a, aScale: 1, b, bScale: 1 }, { beta: 1 });
    // @ts-expect-error: no bigints
    wg.qgemm({ a, aScale: 1, b, bScale: 1 }, { alpha: 1n });
    // @ts-expect-error: an out holds results
    wg.qgemm({ a, aScale: 1, b, bScale: 1 }, { out: { data: new Int32Array(4), shape: [2, 2] } });
    // @ts-expect-error: not to be changed
    weights.shape = [1, 1];
  `;
  expect(compile('qgemm', inFunction(program), oldest)).toEqual([]);
});

it('activation, as, and weights as bytes have types of their own', () => {
  const program = `
    import { createGemm, type Activation, type GemmOptions, type MatMulOptions, type PackedWeights, type PackOptions, type QGemmOptions, type Tensor } from 'wgemm';
    import { createGemm as startWorker, type Activation as SameActivation, type WorkerWeights } from 'wgemm/worker';
    const wg = await createGemm();
    const worker = await startWorker();
    const a = { data: new Float32Array(4), shape: [2, 2] };
    const eight = { data: new Int8Array(4), shape: [2, 2] };

    const bounds = [-1, Infinity] as const;
    const activations: Activation[] = ['relu', 'relu6', [0, 6], bounds];
    const theirs: SameActivation[] = activations;
    for (const activation of activations) {
      const floats: Tensor<Float32Array>[] = [
        wg.gemm(a, a, null, { activation }), wg.matmul(a, a, 1, { activation }), wg.qgemm({ a: eight, aScale: 1, b: eight, bScale: 1 }, { activation }),
      ];
      await worker.gemm(a, a, null, { activation });
      await worker.matmul(a, a, null, { activation });
      await worker.qgemm({ a: eight, aScale: 1, b: eight, bScale: 1 }, { activation });
      wg.explain('matmul', a, a, null, { activation });
    }
    const options: [GemmOptions, MatMulOptions, QGemmOptions] = [{ activation: 'relu' }, { activation: 'relu6' }, { activation: [0, 1] }];

    const types: PackOptions['as'][] = ['bfloat16', 'float16', 'float32', undefined];
    const weights: PackedWeights = wg.pack(a, { op: 'matmul', trans: true, as: 'bfloat16' });
    const inWorker: WorkerWeights = await worker.pack(a, { op: 'gemm', as: 'float16', transfer: true });
    const y: Tensor<Float32Array> = wg.matmul(a, weights, null, { activation: 'relu6' });

    const bytes: Uint8Array = weights.serialize();
    const same: Uint8Array = await inWorker.serialize();
    const files = [new Blob([weights.serialize()]), new Blob([await inWorker.serialize()])];
    const again: PackedWeights[] = [wg.deserialize(bytes), wg.deserialize(bytes.buffer), wg.deserialize(new SharedArrayBuffer(8))];
    const there: WorkerWeights[] = [await worker.deserialize(bytes, { transfer: true }), await worker.deserialize(bytes.buffer)];

    // @ts-expect-error: no such activation
    wg.gemm(a, a, null, { activation: 'gelu' });
    // @ts-expect-error: two bounds
    wg.gemm(a, a, null, { activation: [0] });
    // @ts-expect-error: two bounds
    wg.matmul(a, a, null, { activation: [0, 1, 2] });
    // @ts-expect-error: bounds are numbers
    wg.matmul(a, a, null, { activation: [0n, 6n] });
    // @ts-expect-error: a bound is not enough
    wg.qgemm({ a: eight, aScale: 1, b: eight, bScale: 1 }, { activation: 6 });
    // @ts-expect-error: not null
    wg.gemm(a, a, null, { activation: null });
    // @ts-expect-error: no such activation
    await worker.gemm(a, a, null, { activation: 'gelu' });
    // @ts-expect-error: not of the packing
    wg.pack(a, { op: 'gemm', activation: 'relu' });
    // @ts-expect-error: no such type
    wg.pack(a, { op: 'gemm', as: 'half' });
    // @ts-expect-error: a type by its name
    wg.pack(a, { op: 'gemm', as: Float32Array });
    // @ts-expect-error: no such type
    await worker.pack(a, { op: 'matmul', as: 'half' });
    // @ts-expect-error: where weights are packed, not where they are used
    wg.gemm(a, a, null, { as: 'bfloat16' });
    // @ts-expect-error: bytes
    wg.deserialize([1, 2]);
    // @ts-expect-error: bytes
    wg.deserialize('wgemm-pw');
    // @ts-expect-error: no options
    weights.serialize({ signal: null });
    // @ts-expect-error: weights are not bytes
    await worker.deserialize(inWorker);
  `;
  expect(compile('kept', inFunction(program), oldest)).toEqual([]);
});

it('weights flow from what the DOM has', () => {
  const program = `
    import { createGemm, type BlockFormat } from 'wgemm';
    import { packFrom, readGGUF, type WeightsFile } from 'wgemm/weights';
    import { createGemm as start, type WorkerWeights } from 'wgemm/worker';

    const wg = await createGemm();
    const { signal } = new AbortController();
    const file: WeightsFile = await readGGUF(new Blob([]));
    const weights = await packFrom(wg, file, 'w', { signal, as: 'bfloat16' });
    const format: BlockFormat | undefined = weights.format;
    const y: Float32Array = wg.matmulNBits({ data: new Float32Array(32), shape: [1, 32] }, weights).data;
    const inWorker: WorkerWeights = await packFrom(await start(), file, 'w');
    const { body } = await fetch('w.bin');
    if (body) await packFrom(wg, body, { type: 'Q4_K', shape: [1, 256], offset: 64 });
    for await (const { data } of file.rows('w', { signal })) y.set(data);
    // @ts-expect-error: not a type that F32 can be packed as
    await packFrom(wg, file, 'w', { as: 'int8' });
  `;
  expect(compile('flow', inFunction(program), oldest)).toEqual([]);
});

it('using works with the library that has it, and our declarations do not disturb it', () => {
  const program = `
    import { createGemm } from 'wgemm';
    import { createGemm as startWorker } from 'wgemm/worker';
    export async function main(): Promise<number> {
      using wg = await createGemm();
      using heap = wg.alloc('float32', [1]);
      using worker = await startWorker();
      using inWorker = await worker.alloc('float32', [1]);
      using weights = await worker.pack(inWorker, { op: 'gemm' });
      const disposables: Disposable[] = [wg, heap, worker, inWorker, weights];
      return disposables.length + heap.size;
    }
  `;
  expect(compile('using', program, [...oldest, 'esnext.disposable'])).toEqual([]);
  expect(compile('using-esnext', program, ['esnext', 'dom'])).toEqual([]);
});

it('a Float16Array is data, for a TypeScript that knows it', () => {
  const program = `
    import { createGemm, type Tensor } from 'wgemm';
    export async function main(): Promise<Tensor<Float16Array>> {
      const wg = await createGemm();
      const a = { data: new Float16Array(4), shape: [2, 2] };
      return wg.gemm(a, a, 1, { alpha: 0.5 });
    }
  `;
  expect(compile('float16', program, ['esnext', 'dom'])).toEqual([]);
});

it('declarations tell nothing of what is inside', () => {
  const program = `
    import { HeapTensor } from 'wgemm';
    // @ts-expect-error: internal
    HeapTensor.address;
  `;
  expect(compile('inside', program, oldest)).toEqual([]);
});

it('the types of wgemm/worker infer what a call gives, with ES2020 and the DOM alone', () => {
  const program = `
    import {
      ArgumentError, createGemm, dequantize, DisposedError, DTypeError, GemmError, OpsetError, OutOfMemoryError, PackMismatchError, quantize,
      quantizeBias, ShapeError, UnsupportedError, version, WorkerGemm, WorkerTensor, WorkerWeights,
    } from 'wgemm/worker';
    import type {
      ArrayOf, Assets, CallOptions, CreateOptions, DataArray, DType, ErrorCode, Explanation, Float16ArrayLike, GemmArray, GemmOptions, Info, KernelInfo, MatMulOptions, Matrix,
      PackOptions, QGemmInputs, QGemmOptions, QuantizedArray, ResultArray, Scale, Signal, Tensor, TensorInput, WorkerCreateOptions, WorkerTensorLike, ZeroPoint,
    } from 'wgemm/worker';
    import { createGemm as createHere, GemmError as SameError, HeapTensor, PackedWeights } from 'wgemm';

    /** Passes where both are the very same type. */
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    function same<A, B>(_: Same<A, B>) {}
    /** Arrays of results. */
    type New32 = ReturnType<Float32Array['slice']>;
    type New8 = ReturnType<(Int8Array | Uint8Array)['slice']>;

    const wg = await createGemm({ threads: 'auto', maxMemory: 1e9, assets: (file) => new URL(file), worker: () => new Worker('wgemm-worker.js') });
    same<typeof wg, WorkerGemm>(true);
    const a: TensorInput<Float32Array> = { data: new Float32Array(6), shape: [2, 3], strides: [3, 1] };
    const b: TensorInput<Float32Array> = { data: new Float32Array(6), shape: [3, 2], dtype: 'float32' };
    const i: TensorInput<Int32Array> = { data: new Int32Array(4), shape: [2, 2] };
    const eight: TensorInput<Uint8Array> = { data: new Uint8Array(6), shape: [2, 3] };
    const { signal } = new AbortController();

    const y = wg.gemm(a, b, null, { alpha: 0.5, transfer: true, signal });
    same<typeof y, Promise<Matrix<New32>>>(true);
    const ints: Int32Array = (await wg.gemm(i, i, 3)).data;
    // @ts-expect-error: an array of int32 is none of float32
    const wrong: Float32Array = (await wg.gemm(i, i)).data;
    // @ts-expect-error: a promise is not a tensor
    wg.gemm(a, b).data;

    const heap = await wg.alloc('float32', [2, 2]);
    same<typeof heap, WorkerTensor<New32>>(true);
    const read = heap.read({ signal });
    same<typeof read, Promise<New32>>(true);
    const written: Promise<void> = heap.write(new Float32Array(4), { offset: 0, transfer: true, signal });
    const [size, dtype, shape, gone]: [number, DType, readonly number[], boolean] = [heap.size, heap.dtype, heap.shape, heap.disposed];
    const out = wg.gemm(a, heap, heap, { out: heap });
    same<typeof out, Promise<typeof heap>>(true);
    // Arrays whose buffer is known to be no shared one, since TypeScript 5.7.
    const fresh = { data: new Float32Array(4), shape: [2, 2] };
    const same1 = wg.gemm(fresh, fresh, null, { out: heap });
    same<typeof same1, Promise<typeof heap>>(true);
    wg.gemm(fresh, heap, fresh, { out: fresh });
    wg.matmul(fresh, heap, null, { out: heap });
    wg.qgemm({ a: eight, aScale: fresh, b: eight, bScale: fresh.data }, { out: fresh });
    const tag: number = (await wg.gemm(a, b, heap, { out: { data: new Float32Array(4), shape: [2, 2], tag: 1 }, transfer: true })).tag;
    await wg.gemm(await wg.gemm(a, b), await wg.gemm(a, b), null, { out: await wg.gemm(a, b) });

    const wide = wg.matmul({ data: new Uint16Array(1), shape: [1], dtype: 'float16' }, { data: new Uint16Array(1), shape: [1], dtype: 'float16' }, null, { outType: 'float32', signal });
    same<typeof wide, Promise<Tensor<New32>>>(true);
    const halves: Uint16Array | Float16ArrayLike = (await wg.matmul({ data: new Uint16Array(1), shape: [1] }, { data: new Uint16Array(1), shape: [1] })).data;
    const weights = await wg.pack(b, { op: 'gemm', transfer: true });
    same<typeof weights, WorkerWeights>(true);
    const op: 'gemm' | 'qgemm' | 'matmulNBits' = weights.op;
    const bytes: number = weights.byteLength;
    const packedY = wg.matmul(a, weights, 1, { transposeA: true });
    same<typeof packedY, Promise<Tensor<New32>>>(true);

    const floats = wg.qgemm({ a: eight, aScale: 1, b: weights, bScale: heap }, { alpha: 2, signal });
    same<typeof floats, Promise<Matrix<New32>>>(true);
    const quantized = wg.qgemm({ a: eight, aScale: 1, b: eight, bScale: 1, yScale: 1, yZeroPoint: 0 });
    same<typeof quantized, Promise<Matrix<New8>>>(true);
    const filled = wg.qgemm({ a: eight, aScale: 1, b: eight, bScale: 1, c: await wg.alloc('int32', []) }, { out: heap });
    same<typeof filled, Promise<typeof heap>>(true);
    const qa = quantize(a);
    await wg.qgemm({ a: qa, aScale: qa.scale, aZeroPoint: qa.zeroPoint, b: await wg.pack(eight, { op: 'qgemm' }), bScale: qa.scale });

    const plan: Promise<Explanation> = wg.explain('gemm', a, weights, 1, { alpha: 2, out: heap });
    const plans: Promise<Explanation>[] = [wg.explain('matmul', a, heap), wg.explain('qgemm', { a: eight, aScale: 1, b: eight, bScale: 1 })];
    const { inUse, committed }: { inUse: number; committed: number } = await wg.memory({ signal });
    const info: Info = wg.info;
    const ended: boolean = wg.disposed;
    heap.dispose();
    weights.dispose();
    wg.dispose();
    function twice<A extends GemmArray>(x: WorkerTensorLike<A>): Promise<Matrix<ResultArray<A>>> { return wg.gemm(x, x, x, { beta: 2 }); }
    const error: SameError = new GemmError('WORKER', 'gemm', '', 'text');
    const code: ErrorCode = error.code;
    const signals: Signal[] = [signal, { aborted: false, addEventListener() {}, removeEventListener() {} }];
    const options: WorkerCreateOptions = { worker: () => new Worker('', { type: 'module' }) };

    const here = await createHere();
    // @ts-expect-error: weights of an instance that is not a worker
    wg.gemm(a, here.pack(b, { op: 'gemm' }));
    // @ts-expect-error: a tensor of a worker
    here.gemm(heap, b);
    // @ts-expect-error: weights of a worker
    here.gemm(a, weights);
    // @ts-expect-error: weights can only stand for B
    wg.gemm(weights, b);
    // @ts-expect-error: types must agree
    wg.gemm(a, i);
    // @ts-expect-error: types must agree
    wg.gemm(a, b, null, { out: i });
    // @ts-expect-error: no such option
    wg.gemm(a, b, null, { transa: true });
    // @ts-expect-error: not a boolean
    wg.gemm(a, b, null, { transfer: 1 });
    // @ts-expect-error: the controller is not a signal
    wg.gemm(a, b, null, { signal: new AbortController() });
    // @ts-expect-error: an array is not a tensor
    wg.gemm(new Float32Array(4), b);
    // @ts-expect-error: another type
    heap.write(new Int32Array(4));
    // @ts-expect-error: its elements are elsewhere
    heap.data;
    // @ts-expect-error: not to be changed
    heap.shape[0] = 1;
    // @ts-expect-error: not to be changed
    weights.op = 'qgemm';
    // @ts-expect-error: an operation is needed
    wg.pack(b);
    // @ts-expect-error: float32 is quantized first
    wg.pack(b, { op: 'qgemm' });
    // @ts-expect-error: float32 is quantized first
    wg.qgemm({ a, aScale: 1, b: eight, bScale: 1 });
    // @ts-expect-error: not a type
    wg.alloc('Float32', [1]);
    // @ts-expect-error: there is no such operation
    wg.explain('conv', a, b);
    // @ts-expect-error: no such option
    await createGemm({ thread: 1 });
    // @ts-expect-error: a function is needed
    await createGemm({ worker: new Worker('') });
    // @ts-expect-error: a promise is not an instance
    createGemm().gemm(a, b);
    // @ts-expect-error: internal
    heap.call('read', [], {});
  `;
  expect(compile('worker', inFunction(program), oldest)).toEqual([]);
});

it('the types of the integer products infer what a call gives, and refuse other arrays', () => {
  const program = `
    import { createGemm, HeapTensor } from 'wgemm';
    import type {
      Bias, DynamicQuantizeMatMulOptions, Explanation, Float16ArrayLike, HalfVector, MatMulIntegerOptions, MatMulIntegerToFloatOptions, PackedWeights,
      QLinearMatMulInputs, QLinearMatMulOptions, Tensor, TensorInput,
    } from 'wgemm';
    import { createGemm as startWorker } from 'wgemm/worker';

    /** Passes where both are the very same type. */
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    function same<A, B>(_: Same<A, B>) {}
    /** Arrays of results. */
    type NewInts = ReturnType<Int32Array['slice']>;
    type New32 = ReturnType<Float32Array['slice']>;
    type New8 = ReturnType<(Int8Array | Uint8Array)['slice']>;

    const wg = await createGemm();
    const worker = await startWorker();
    const a: TensorInput<Uint8Array> = { data: new Uint8Array(6), shape: [2, 3] };
    const b: TensorInput<Int8Array> = { data: new Int8Array(6), shape: [3, 2], strides: [2, 1] };
    const f: TensorInput<Float32Array> = { data: new Float32Array(6), shape: [2, 3] };
    const half: HalfVector = { data: new Uint16Array(1), shape: [], dtype: 'float16' };
    const weights: PackedWeights = wg.pack(b, { op: 'qgemm' });
    const one = new Float32Array(1);

    // Results.
    const ints = wg.matmulInteger(a, b);
    same<typeof ints, Tensor<NewInts>>(true);
    const bytes = wg.qlinearMatmul({ a, aScale: 1, b: weights, bScale: one, yScale: f });
    same<typeof bytes, Tensor<New8>>(true);
    const dynamic = wg.dynamicQuantizeMatmul(f, weights, { bScale: 1 });
    same<typeof dynamic, Tensor<New32>>(true);
    const floats = wg.matmulIntegerToFloat(a, b, { aScale: 1, bScale: one });
    same<typeof floats, Tensor<New32>>(true);
    const numbers = wg.matmulIntegerToFloat(a, b, { aScale: 1, bScale: 1 });
    same<typeof numbers, Tensor<New32>>(true);
    const halves: Uint16Array | Float16ArrayLike = wg.matmulIntegerToFloat(a, b, { aScale: half, bScale: 1, bias: half }).data;
    // @ts-expect-error: it may be a Float16Array
    const sameBits: Uint16Array = wg.matmulIntegerToFloat(a, b, { aScale: half, bScale: half }).data;
    // @ts-expect-error: float16 scales give float16
    const noFloats: Float32Array = wg.matmulIntegerToFloat(a, b, { aScale: half, bScale: half }).data;
    // @ts-expect-error: which of the 8-bit types is not known
    const wrong: Uint8Array = bytes.data;
    const theirs = [await worker.matmulInteger(a, b), await worker.qlinearMatmul({ a, aScale: 1, b, bScale: 1, yScale: 1 }), await worker.dynamicQuantizeMatmul(f, b, { bScale: 1 }), await worker.matmulIntegerToFloat(a, b, { aScale: 1, bScale: 1 })] as const;
    same<typeof theirs, readonly [Tensor<NewInts>, Tensor<New8>, Tensor<New32>, Tensor<New32>]>(true);
    await worker.matmulInteger(a, await worker.pack(b, { op: 'qgemm' }), { transfer: true });
    await worker.dynamicQuantizeMatmul(f, b, { bScale: 1, transfer: true });

    // A result is an input of the next call.
    wg.matmulInteger(bytes, bytes, { aZeroPoint: bytes });
    wg.dynamicQuantizeMatmul(dynamic, b, { bScale: dynamic, bias: floats });

    // What is given as out comes back, as it was given.
    const heap = wg.matmulInteger(a, b, { out: wg.alloc('int32', [2, 2]) });
    same<typeof heap, HeapTensor<Int32Array>>(true);
    const tag: number = wg.dynamicQuantizeMatmul(f, b, { bScale: 1, out: { data: new Float32Array(4), shape: [2, 2], tag: 1 } }).tag;
    const heapBytes = wg.qlinearMatmul({ a, aScale: 1, b, bScale: 1, yScale: 1, yZeroPoint: new Int8Array(1) }, { out: wg.alloc('int8', [2, 2]) });
    same<typeof heapBytes, HeapTensor<Int8Array>>(true);
    const heapFloats = wg.matmulIntegerToFloat(a, b, { aScale: 1, bScale: 1, out: wg.alloc('float32', [2, 2]) });
    same<typeof heapFloats, HeapTensor<Float32Array>>(true);

    // All options, also null.
    const options: MatMulIntegerOptions = { aZeroPoint: null, bZeroPoint: new Int8Array(1), transA: 1, transB: false };
    wg.matmulInteger(a, b, options);
    const inputs: QLinearMatMulInputs = { a, aScale: half, aZeroPoint: 1, b, bScale: half, bZeroPoint: null, yScale: 1, yZeroPoint: new Uint8Array(1) };
    const linear: QLinearMatMulOptions = { activation: 'relu' };
    wg.qlinearMatmul(inputs, linear);
    const bias: Bias = one;
    const ofDynamic: DynamicQuantizeMatMulOptions = { bScale: one, bZeroPoint: 1, bias, activation: [0, 6] };
    wg.dynamicQuantizeMatmul(f, b, ofDynamic);
    const ofFloat: MatMulIntegerToFloatOptions<Float32Array> = { aScale: 1, bScale: 1 };
    const plans: Explanation[] = [
      wg.explain('matmulInteger', a, b, options), wg.explain('qlinearMatmul', inputs, linear), wg.explain('dynamicQuantizeMatmul', f, b, ofDynamic),
      wg.explain('matmulIntegerToFloat', a, weights, { aScale: half, bScale: 1, bias: half }), await worker.explain('dynamicQuantizeMatmul', f, b, { bScale: 1 }),
    ];

    // @ts-expect-error: quantized by dynamicQuantizeMatmul only
    wg.matmulInteger(f, b);
    // @ts-expect-error: B is quantized
    wg.matmulInteger(a, f);
    // @ts-expect-error: A is not
    wg.dynamicQuantizeMatmul(a, b, { bScale: 1 });
    // @ts-expect-error: B is quantized
    wg.dynamicQuantizeMatmul(f, f, { bScale: 1 });
    // @ts-expect-error: a scale is needed
    wg.dynamicQuantizeMatmul(f, b);
    // @ts-expect-error: a scale is needed
    wg.dynamicQuantizeMatmul(f, b, {});
    // @ts-expect-error: A has none
    wg.dynamicQuantizeMatmul(f, b, { aScale: 1, bScale: 1 });
    // @ts-expect-error: both scales are needed
    wg.matmulIntegerToFloat(a, b, { bScale: 1 });
    // @ts-expect-error: y_scale is needed
    wg.qlinearMatmul({ a, aScale: 1, b, bScale: 1 });
    // @ts-expect-error: no scale
    wg.matmulInteger(a, b, { bScale: 1 });
    // @ts-expect-error: no bounds
    wg.matmulInteger(a, b, { activation: 'relu' });
    // @ts-expect-error: no alpha
    wg.qlinearMatmul({ a, aScale: 1, b, bScale: 1, yScale: 1 }, { alpha: 1 });
    // @ts-expect-error: zero points are integers
    wg.matmulInteger(a, b, { aZeroPoint: one });
    // @ts-expect-error: scales are float32
    wg.dynamicQuantizeMatmul(f, b, { bScale: new Float64Array(1) });
    // @ts-expect-error: a bias is not a number
    wg.dynamicQuantizeMatmul(f, b, { bScale: 1, bias: 1 });
    // @ts-expect-error: scales of one type
    wg.matmulIntegerToFloat(a, b, { aScale: half, bScale: one });
    // @ts-expect-error: the result is int32
    wg.matmulInteger(a, b, { out: f });
    // @ts-expect-error: the result is float32
    wg.dynamicQuantizeMatmul(f, b, { bScale: 1, out: ints });
    // @ts-expect-error: the result has 8 bits
    wg.qlinearMatmul({ a, aScale: 1, b, bScale: 1, yScale: 1 }, { out: ints });
    // @ts-expect-error: weights can only stand for B
    wg.matmulInteger(weights, b);
  `;
  expect(compile('integer-products', inFunction(program), oldest)).toEqual([]);
});

it('the types of matmulNBits', () => {
  const program = `
    import { createGemm, fromGGUF, HeapTensor, PackedWeights, quantizeNBits } from 'wgemm';
    import type { Explanation, Float16ArrayLike, GGUFTensor, MatMulNBitsOptions, NBitsArray, NBitsWeights, QuantizedNBits, QuantizeNBitsOptions, Tensor } from 'wgemm';
    import { createGemm as createWorker, quantizeNBits as same, type WorkerWeights } from 'wgemm/worker';
    type New32 = ReturnType<Float32Array['slice']>;
    type New16 = ReturnType<Uint16Array['slice']> | Float16ArrayLike;
    const [wg, worker] = [await createGemm(), await createWorker()];
    const is = <T,>(value: T) => void value;
    const a = { data: new Float32Array(32), shape: [1, 32] };
    const half = { data: new Uint16Array(32), shape: [1, 32], dtype: 'float16' as const };
    const codes = { data: new Uint8Array(16), shape: [1, 1, 16] };
    const scales = { data: new Float32Array(1), shape: [1, 1] };
    const options: QuantizeNBitsOptions = { bits: 2, blockSize: 16, symmetric: false, trans: 1 };
    const made: QuantizedNBits = quantizeNBits({ data: new Float32Array(32), shape: [32, 1] }, options);
    const tensor: GGUFTensor = { type: 'Q8_0', data: new Uint8Array(34), shape: [1, 32] };
    const weights: NBitsWeights<Float32Array> = { data: codes, scales, zeroPoints: scales, k: 32, n: 1, blockSize: 32 };
    const halves: NBitsWeights<Uint16Array> = { data: codes, scales: half, k: 32, n: 1, bits: 4, blockSize: 32, zeroPoints: null };
    const packed: PackedWeights = wg.pack(weights, { op: 'matmulNBits' });
    const op: 'gemm' | 'qgemm' | 'matmulNBits' = packed.op;
    is<Tensor<New32>>(wg.matmulNBits(a, made));
    is<Tensor<New32>>(wg.matmulNBits(a, fromGGUF(tensor), { accuracyLevel: 4, bias: new Float32Array(1) }));
    is<Tensor<New32>>(wg.matmulNBits(wg.alloc('float32', [1, 32]), packed, { activation: 'relu', bias: scales }));
    is<Tensor<New16>>(wg.matmulNBits(half, halves, { bias: new Uint16Array(1) }));
    is<HeapTensor<Float32Array>>(wg.matmulNBits(a, { ...weights, data: wg.alloc('uint8', [1, 1, 16]) }, { out: wg.alloc('float32', [1, 1]) }));
    const named: MatMulNBitsOptions<Float32Array> = { bias: null, accuracyLevel: 0 };
    wg.matmulNBits(a, weights, named);
    is<Explanation>(wg.explain('matmulNBits', a, weights, named));
    const theirs: WorkerWeights = await worker.pack(same({ data: new Float32Array(32), shape: [32, 1] }), { op: 'matmulNBits', transfer: true });
    is<Tensor<New32>>(await worker.matmulNBits(a, theirs, { transfer: true, accuracyLevel: 4 }));
    is<Tensor<New32>>(await worker.matmulNBits(a, { data: await worker.alloc('uint8', [1, 1, 16]), scales, k: 32, n: 1, blockSize: 32 }));
    is<Explanation>(await worker.explain('matmulNBits', a, theirs));
    const array: NBitsArray = new Uint16Array(1);

    // @ts-expect-error: a has another type
    wg.matmulNBits({ data: new Float64Array(32), shape: [1, 32] }, weights);
    // @ts-expect-error: scales have the type of a
    wg.matmulNBits(a, halves);
    // @ts-expect-error: a tensor is not weights
    wg.matmulNBits(a, a);
    // @ts-expect-error: k is needed
    wg.matmulNBits(a, { data: codes, scales, n: 1, blockSize: 32 });
    // @ts-expect-error: a bias is not a number
    wg.matmulNBits(a, weights, { bias: 1 });
    // @ts-expect-error: of the type of a
    wg.matmulNBits(a, weights, { out: half });
    // @ts-expect-error: weights of matmulNBits are packed for it
    wg.pack(weights, { op: 'gemm' });
    // @ts-expect-error: a tensor is packed for others
    wg.pack(a, { op: 'matmulNBits' });
    // @ts-expect-error: their layout is given
    wg.pack(weights, { op: 'matmulNBits', trans: true });
    // @ts-expect-error: 2, 4 or 8
    quantizeNBits(a, { bits: 3 });
    // @ts-expect-error: no such type
    fromGGUF({ type: 'Q4_1', data: new Uint8Array(1), shape: [1, 32] });
  `;
  expect(compile('matmul-nbits', inFunction(program), oldest)).toEqual([]);
});

it('the types of syrk', () => {
  const program = `
    import { createGemm, HeapTensor } from 'wgemm';
    import type { Explanation, Matrix, ResultArray, SyrkArray, SyrkOptions, TensorLike } from 'wgemm';
    import { createGemm as createWorker, type SyrkOptions as Same, type WorkerTensor } from 'wgemm/worker';
    type New32 = ReturnType<Float32Array['slice']>;
    type New64 = ReturnType<Float64Array['slice']>;
    const [wg, worker] = [await createGemm(), await createWorker()];
    const is = <T,>(value: T) => void value;
    const a = { data: new Float32Array(2), shape: [2, 1] };
    const wide = { data: new Float64Array(2), shape: [2, 1], strides: [1, 1], offset: 0 };
    const held = wg.alloc('float64', [2, 1]);
    is<Matrix<New32>>(wg.syrk(a));
    is<Matrix<New64>>(wg.syrk(wide, { alpha: 0.5, transA: true }));
    is<Matrix<New64>>(wg.syrk({ data: held, shape: [2, 1] }, { transA: 0, out: undefined }));
    is<HeapTensor<Float64Array>>(wg.syrk(held, { out: wg.alloc('float64', [2, 2]) }));
    wg.syrk(a, { out: { data: new Float32Array(4), shape: [2, 2], tag: 1 } }).tag;
    const named: SyrkOptions<Float32Array> = { alpha: 2, out: a };
    const theirs: Same = named;
    wg.syrk(a, named);
    wg.syrk(a, theirs);
    is<Explanation>(wg.explain('syrk', a, named));
    const generic = <A extends SyrkArray>(x: TensorLike<A>): Matrix<ResultArray<A>> => wg.syrk(x, { transA: true });
    generic(a).shape[1];
    is<Matrix<New32>>(await worker.syrk(a, { transfer: true, alpha: 2 }));
    is<WorkerTensor<New64>>(await worker.syrk(wide, { out: await worker.alloc('float64', [2, 2]) }));
    is<Explanation>(await worker.explain('syrk', a, { transA: true }));
    wg.record((calls) => is<HeapTensor<Float64Array>>(calls.syrk(held, { out: held, transA: true })));

    // @ts-expect-error: float32 and float64 only
    wg.syrk({ data: new Int32Array(2), shape: [2, 1] });
    // @ts-expect-error: float32 and float64 only
    wg.syrk({ data: new Uint16Array(2), shape: [2, 1], dtype: 'float16' });
    // @ts-expect-error: no packed weights
    wg.syrk(wg.pack(a, { op: 'gemm' }));
    // @ts-expect-error: out has the type of the result
    wg.syrk(a, { out: wide });
    // @ts-expect-error: no such option
    wg.syrk(a, { transB: true });
    // @ts-expect-error: floats have no bigints
    wg.syrk(a, { alpha: 1n });
    // @ts-expect-error: options come second
    wg.syrk(a, a, null, {});
    // @ts-expect-error: an array in a recording
    wg.record((calls) => calls.syrk(a, { out: held }));
    // @ts-expect-error: no out
    wg.record((calls) => calls.syrk(held, { alpha: 2 }));
  `;
  expect(compile('syrk', inFunction(program), oldest)).toEqual([]);
});

it('the types of files of weights: a check of the type tells the array', () => {
  const program = `
    import { createGemm, fromGGUF, HeapTensor, PackedWeights } from 'wgemm';
    import { readGGUF, readSafetensors } from 'wgemm/weights';
    import type { BlobLike, GGUFFile, GGUFValue, ReadRange, SafetensorsFile, WeightsInfo, WeightsSource, WeightsTensor, WeightsTensorOf, WeightsTypes } from 'wgemm/weights';
    const wg = await createGemm();
    const range: ReadRange = (offset, length) => new Uint8Array(length + offset);
    const sources: WeightsSource[] = [new Uint8Array(1), new ArrayBuffer(1), new Blob([]), new File([], ''), 'https://example.com', new URL('https://example.com'), range, async () => new ArrayBuffer(1)];
    const file: GGUFFile = await readGGUF(sources[0]!);
    const other: SafetensorsFile = await readSafetensors(range);
    const value: GGUFValue | undefined = file.metadata.get('general.architecture');
    const text: string | undefined = other.metadata.get('format');
    const info: WeightsInfo | undefined = file.tensors.get('w');
    const size: number = (info?.byteLength ?? 0) + (info?.offset ?? 0) + (text?.length ?? 0) + (value === undefined ? 0 : 1);
    const tensor: WeightsTensor = await file.tensor('w');
    if (tensor.type === 'BF16') wg.pack(tensor, { op: 'matmul' });
    if (tensor.type === 'F16') wg.pack(tensor, { op: 'matmul' });
    if (tensor.type === 'U8') { const bytes: Uint8Array = tensor.data; }
    const { type, data, shape } = tensor;
    if (type === 'Q8_0') fromGGUF({ type, data, shape });
    const name: keyof WeightsTypes = tensor.type;
    const blocks = (each: WeightsTensorOf<'Q4_K'>): Uint8Array => each.data;
    const floats: Float32Array = tensor.toFloat32().data;
    const y: Float32Array = wg.matmul(tensor.toFloat32(), tensor.toFloat32()).data;

    // @ts-expect-error: fromGGUF takes two types
    fromGGUF({ type, data, shape });
    // @ts-expect-error: blocks are not operands
    if (tensor.type === 'Q4_K') wg.pack(tensor, { op: 'matmul' });
    // @ts-expect-error: a Blob has a size
    await readGGUF({ arrayBuffer: async () => new ArrayBuffer(1) });
    // @ts-expect-error: a name is a text
    await file.tensor(0);
  `;
  expect(compile('weights', inFunction(program), oldest)).toEqual([]);
});

it('the types of recordings: operands are in the heap, and each call has out', () => {
  const program = `
    import { createGemm, HeapTensor, Recording } from 'wgemm';
    import type { RecordedCalls } from 'wgemm';
    import { createGemm as createWorker, type WorkerRecordedCalls, WorkerRecording, WorkerTensor } from 'wgemm/worker';
    const [wg, worker] = [await createGemm(), await createWorker()];
    const is = <T,>(value: T) => void value;
    const x = wg.alloc('float32', [2, 2]);
    const wide = wg.alloc('float64', [2, 2]);
    const half = wg.alloc('bfloat16', [2, 2]);
    const eight = wg.alloc('uint8', [2, 2]);
    const signed = wg.alloc('int8', [2, 2]);
    const whole = wg.alloc('int32', [2, 2]);
    const array = { data: new Float32Array(4), shape: [2, 2] };
    const view = { data: x, shape: [2, 1], strides: [2, 1], offset: 1 };
    const weights = wg.pack(x, { op: 'gemm' });
    const bytes = wg.pack(eight, { op: 'qgemm' });
    const recording: Recording = wg.record((calls) => {
      is<HeapTensor<Float32Array>>(calls.gemm(x, x, null, { out: x, activation: 'relu' }));
      calls.gemm(view, weights, 3, { out: x, transA: true, alpha: 2 });
      calls.gemm(x, x, view, { out: { data: x, shape: [2, 2], tag: 1 } }).tag;
      calls.gemm(wide, wide, wide, { out: wide });
      calls.matmul(half, half, null, { out: x, outType: 'float32' });
      calls.matmul(x, view, 1, { out: x });
      is<HeapTensor<Float32Array>>(calls.qgemm({ a: eight, aScale: 1, b: bytes, bScale: x }, { out: x }));
      calls.qgemm({ a: eight, aScale: 1, b: signed, bScale: 1, yScale: 2, yZeroPoint: 3 }, { out: eight });
      calls.matmulInteger(eight, signed, { aZeroPoint: 3, bZeroPoint: signed, out: whole });
      calls.qlinearMatmul({ a: eight, aScale: 1, b: signed, bScale: 1, yScale: 1, yZeroPoint: eight }, { out: eight });
      calls.dynamicQuantizeMatmul(x, signed, { bScale: 1, bias: x, out: x });
      calls.matmulIntegerToFloat(eight, bytes, { aScale: 1, bScale: x, bias: null, out: x });
      calls.matmulNBits(x, wg.pack({ data: eight, scales: x, k: 2, n: 1, blockSize: 16 }, { op: 'matmulNBits' }), { bias: x, out: x });
      calls.matmulNBits(x, { data: eight, scales: x, k: 2, n: 1, blockSize: 16 }, { out: x });

      // @ts-expect-error: an array
      calls.gemm(array, x, null, { out: x });
      // @ts-expect-error: an array
      calls.gemm(x, array, null, { out: x });
      // @ts-expect-error: an array
      calls.gemm(x, x, null, { out: array });
      // @ts-expect-error: no out
      calls.gemm(x, x, null, { alpha: 2 });
      // @ts-expect-error: no out
      calls.gemm(x, x);
      // @ts-expect-error: types must agree
      calls.gemm(x, wide, null, { out: x });
      // @ts-expect-error: out has the type of the result
      calls.gemm(x, x, null, { out: wide });
      // @ts-expect-error: int8 and uint8 are for qgemm
      calls.gemm(eight, eight, null, { out: eight });
      // @ts-expect-error: a scale in an array
      calls.qgemm({ a: eight, aScale: 1, b: bytes, bScale: new Float32Array(2) }, { out: x });
      // @ts-expect-error: float32 without yScale
      calls.qgemm({ a: eight, aScale: 1, b: bytes, bScale: 1 }, { out: eight });
      // @ts-expect-error: a zero point has the type of its operand
      calls.matmulInteger(eight, signed, { aZeroPoint: signed, out: whole });
      // @ts-expect-error: int32
      calls.matmulInteger(eight, signed, { out: x });
      // @ts-expect-error: bScale is needed
      calls.dynamicQuantizeMatmul(x, signed, { out: x });
      // @ts-expect-error: weights in arrays
      calls.matmulNBits(x, { data: new Uint8Array(1), scales: x, k: 2, n: 1, blockSize: 16 }, { out: x });
      // @ts-expect-error: nothing is packed in a recording
      calls.pack(x, { op: 'gemm' });
    });
    is<void>(recording.run());
    is<number>(recording.length);
    is<boolean>(recording.disposed);
    const each = (calls: RecordedCalls) => void calls.gemm(x, x, null, { out: x });
    wg.record(each).dispose();
    // @ts-expect-error: a function
    wg.record();

    const there = await worker.alloc('float32', [2, 2]);
    const scales = await worker.alloc('float32', [2]);
    const theirs = await worker.alloc('uint8', [2, 2]);
    const recorded: WorkerRecording = await worker.record((calls) => {
      is<WorkerTensor<Float32Array>>(calls.gemm(there, there, null, { out: there }) as WorkerTensor<Float32Array>);
      calls.matmul({ data: there, shape: [1, 2] }, there, 1, { out: { data: there, shape: [1, 2], offset: 2 } });
      calls.qgemm({ a: theirs, aScale: scales, b: theirs, bScale: 1 }, { out: there });
      // @ts-expect-error: of another instance
      calls.gemm(x, there, null, { out: there });
      // @ts-expect-error: an array
      calls.gemm(there, array, null, { out: there });
      // @ts-expect-error: types must agree
      calls.gemm(there, there, null, { out: theirs });
    }, { signal: new AbortController().signal });
    const eachThere = (calls: WorkerRecordedCalls) => void calls.gemm(there, there, null, { out: there });
    (await worker.record(eachThere)).dispose();
    is<Promise<void>>(recorded.run({ signal: new AbortController().signal }));
  `;
  expect(compile('recordings', inFunction(program), oldest)).toEqual([]);
});

it('loadModel and install take either an instance or options of createGemm', () => {
  const program = `
    import { createGemm, type Gemm } from 'wgemm';
    import { loadModel, type LoadOptions, type Model } from 'wgemm/onnx';
    import { install, type Tfjs } from 'wgemm/tfjs';
    const bytes = new Uint8Array(1);
    const externalData = () => bytes;
    const wg: Gemm | undefined = await createGemm();
    const options: LoadOptions = { threads: 'auto', maxMemory: 1e9, externalData };
    const models: Model[] = [
      await loadModel(bytes), await loadModel(bytes, options), await loadModel(bytes, { wg, externalData }),
      await loadModel(bytes, { wg: undefined, simd: 'simd128' }), await loadModel(bytes, { wg, threads: undefined }),
      await loadModel(bytes, { wg: Math.random() < 0.5 ? wg : undefined }),
    ];

    // @ts-expect-error: either
    await loadModel(bytes, { wg, threads: 2 });
    // @ts-expect-error: either
    await loadModel(bytes, { wg, maxMemory: 1e9, externalData });
    // @ts-expect-error: no such option
    await loadModel(bytes, { thread: 2 });
    // @ts-expect-error: no such build
    await loadModel(bytes, { simd: 'fast' });

    declare const tf: Tfjs;
    await install(tf, { wg, always: true });
    await install(tf, { threads: 2, always: true });
    // @ts-expect-error: either
    await install(tf, { wg, threads: 2 });
  `;
  expect(compile('onnx', inFunction(program), oldest)).toEqual([]);
});

it('calls that would throw are refused, unless a variable has a wider type', () => {
  const program = `
    import { createGemm, type GemmOptions, type MatMulNBitsOptions, type NBitsWeights, quantize } from 'wgemm';
    import { createLinear } from 'wgemm/linear';
    import { createGemm as createWorker, createLinear as createThere } from 'wgemm/worker';
    const [wg, worker] = [await createGemm(), await createWorker()];
    const floats = { data: new Float32Array(4), shape: [2, 2] };
    const longs = { data: new BigInt64Array(4), shape: [2, 2] };
    const [i8, u8] = [{ data: new Int8Array(4), shape: [2, 2] }, { data: new Uint8Array(4), shape: [2, 2] }];
    const scales = { aScale: 1, bScale: 1, yScale: 1 };
    const [signed, unsigned] = [new Int8Array(1), new Uint8Array(1)];
    const [held, there] = [wg.alloc('int8', [2, 2]), await worker.alloc('uint8', [2, 2])];
    const either = i8 as typeof i8 | typeof u8;

    wg.gemm(longs, longs, 1n, { alpha: 1n, beta: 2n });
    wg.gemm(floats, floats, null, { alpha: 2, beta: 0.5 });
    const options: GemmOptions = { alpha: 2 };
    wg.gemm(floats, floats, null, options);
    const some: { alpha: number } = { alpha: 1 };
    wg.matmul(floats, floats, null, some);
    // @ts-expect-error: float32
    wg.gemm(floats, floats, null, { alpha: 1n });
    // @ts-expect-error: float32
    wg.gemm(floats, floats, floats, { beta: 1n, out: floats });
    // @ts-expect-error: float32
    wg.matmul(floats, floats, null, { alpha: 1n });
    // @ts-expect-error: float32
    await worker.gemm(floats, floats, null, { alpha: 1n });

    wg.matmulInteger(u8, i8, { aZeroPoint: unsigned, bZeroPoint: signed });
    wg.matmulInteger(u8, held, { aZeroPoint: 1, bZeroPoint: held });
    wg.matmulInteger(either, wg.pack(i8, { op: 'qgemm' }), { aZeroPoint: signed, bZeroPoint: unsigned });
    wg.dynamicQuantizeMatmul(floats, i8, { bScale: 1, bZeroPoint: signed });
    await worker.matmulInteger(there, i8, { aZeroPoint: there, bZeroPoint: null });
    // @ts-expect-error: uint8
    wg.matmulInteger(u8, i8, { aZeroPoint: signed });
    // @ts-expect-error: int8
    wg.matmulInteger(u8, i8, { bZeroPoint: u8 });
    // @ts-expect-error: int8
    wg.dynamicQuantizeMatmul(floats, i8, { bScale: 1, bZeroPoint: unsigned });
    // @ts-expect-error: uint8
    wg.matmulIntegerToFloat(u8, i8, { aScale: 1, bScale: 1, aZeroPoint: held });
    // @ts-expect-error: uint8
    await worker.matmulInteger(there, i8, { aZeroPoint: signed });

    wg.qlinearMatmul({ a: u8, b: i8, ...scales }, { out: u8 });
    wg.qlinearMatmul({ a: u8, b: i8, ...scales, yZeroPoint: 3 }, { out: u8 });
    wg.qlinearMatmul({ a: u8, b: i8, ...scales, yZeroPoint: signed }, { out: i8 });
    wg.qlinearMatmul({ a: u8, b: i8, ...scales, yZeroPoint: held }, { out: held });
    wg.qlinearMatmul({ a: u8, b: i8, ...scales, yZeroPoint: i8 }, { out: held });
    wg.qlinearMatmul({ a: either, b: i8, ...scales }, { out: i8 });
    await worker.qlinearMatmul({ a: there, b: i8, ...scales }, { out: there });
    // @ts-expect-error: the type of a
    wg.qlinearMatmul({ a: u8, b: i8, ...scales }, { out: i8 });
    // @ts-expect-error: the type of a
    wg.qlinearMatmul({ a: u8, b: i8, ...scales, yZeroPoint: 3 }, { out: i8 });
    // @ts-expect-error: the type of yZeroPoint
    wg.qlinearMatmul({ a: u8, b: i8, ...scales, yZeroPoint: signed }, { out: u8 });
    // @ts-expect-error: the type of a
    wg.qlinearMatmul({ a: u8, b: i8, ...scales, aZeroPoint: signed });
    // @ts-expect-error: an unknown input
    wg.qlinearMatmul({ a: u8, b: i8, ...scales, zero: 1 });
    // @ts-expect-error: the type of a
    await worker.qlinearMatmul({ a: there, b: i8, ...scales }, { out: i8 });

    const codes = { data: new Uint8Array(16), shape: [1, 1, 16] };
    const parts = { data: codes, scales: { data: new Float32Array(1), shape: [1, 1] }, k: 32, n: 1 };
    const read: number = JSON.parse('32');
    const named: NBitsWeights<Float32Array> = { ...parts, bits: read, blockSize: read };
    const level: MatMulNBitsOptions<Float32Array> = { accuracyLevel: read };
    wg.matmulNBits(floats, { ...parts, bits: 4, blockSize: 32 }, { accuracyLevel: 4 });
    wg.matmulNBits(floats, { ...parts, blockSize: read }, { accuracyLevel: read });
    wg.matmulNBits(floats, named, level);
    wg.pack({ ...parts, bits: read, blockSize: read }, { op: 'matmulNBits' });
    // @ts-expect-error: 2, 4 or 8
    wg.matmulNBits(floats, { ...parts, bits: 3, blockSize: 32 });
    // @ts-expect-error: a power of two of 16 or more
    wg.matmulNBits(floats, { ...parts, blockSize: 3 });
    // @ts-expect-error: 0 to 4
    wg.matmulNBits(floats, named, { accuracyLevel: 5 });
    // @ts-expect-error: 2, 4 or 8
    wg.pack({ ...parts, bits: 3, blockSize: 32 }, { op: 'matmulNBits' });
    // @ts-expect-error: a power of two of 16 or more
    await worker.matmulNBits(floats, { ...parts, blockSize: 3 });

    const eight = { scale: 1, zeroPoint: 0 };
    const quantized = quantize(floats, { symmetric: true, axis: 1 });
    createLinear(wg, { weights: floats, as: 'int8', input: eight, output: eight });
    createLinear(wg, { weights: quantized, input: eight });
    createLinear(wg, { weights: floats, as: 'int8' });
    createLinear(wg, { weights: quantized });
    const as: 'int8' | 'float16' = Math.random() < 0.5 ? 'int8' : 'float16';
    createLinear(wg, { weights: floats, as });
    await createThere(worker, { weights: floats, as });
    // @ts-expect-error: a layer of floating point has no input
    createLinear(wg, { weights: floats, input: eight });
    // @ts-expect-error: output needs input
    createLinear(wg, { weights: floats, as: 'int8', output: eight });
    // @ts-expect-error: output needs input
    createLinear(wg, { weights: quantized, output: eight });
    await createThere(worker, { weights: floats, as: 'int8', input: eight });
    // @ts-expect-error: a layer of floating point has no input
    await createThere(worker, { weights: floats, input: eight });
    // @ts-expect-error: output needs input
    await createThere(worker, { weights: quantized, output: eight });
  `;
  expect(compile('refused', inFunction(program), oldest)).toEqual([]);
});

it('the declarations of every entry compile with ES2020 alone, without the DOM', () => {
  const program = `
    import { createGemm } from 'wgemm';
    import { createGemm as startWorker, type Signal } from 'wgemm/worker';
    import { createGemm as createInline, GemmError } from 'wgemm/inline';
    import { readGGUF } from 'wgemm/weights';
    export async function main(signal: Signal): Promise<number> {
      const [wg, worker, inline] = [await createGemm(), await startWorker({ worker: () => ({}) }), await createInline({ assets: () => new Uint8Array(1) })];
      const a = { data: new Float32Array(4), shape: [2, 2] };
      const results: Float32Array[] = [wg.gemm(a, a).data, (await worker.gemm(a, a, 1, { signal })).data, inline.gemm(a, a).data];
      if (new Error() instanceof GemmError) throw new GemmError('LOAD', '', '', '');
      return results.length + (await readGGUF('https://example.com')).tensors.size;
    }
  `;
  expect(compile('without-dom', program, ['es2020'])).toEqual([]);
});
