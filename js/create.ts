/** `createGemm`: its options, and the core that it starts. */
import { readOptions } from './options.js';
import { Core } from './core.js';
import { ArgumentError, describe } from './errors.js';
import { type Assets, loadCore } from './load.js';
import type { DType } from './tensor.js';
import { mostThreads } from './threads.js';

/** Version of the library. */
export const version = '0.1.0';

export interface CreateOptions {
  /**
   * Threads that large products are computed on, including the caller's own: 1 to 64, or `'auto'`.
   * `'auto'` takes one per processor, 8 at the most, and 1 where there cannot be more. A number
   * that this page or engine cannot have is an UnsupportedError. A worker that does not start is a
   * GemmError of code `WORKER`. Threads need shared memory, for which a page must be cross-origin
   * isolated. They end on `dispose()`. Default 1.
   */
  threads?: number | 'auto';
  /**
   * The build: `'relaxed'` uses relaxed SIMD, which fuses products and sums in float32 and float64
   * where the processor can; `'auto'` takes it where the engine has it. Default `'auto'`.
   */
  simd?: 'auto' | 'simd128' | 'relaxed';
  /**
   * `'strict'` produces the same bits in every engine, on every processor, in every build, for any
   * number of threads. Floating point is then summed in ascending k, each product and each sum is
   * rounded, and every NaN is the canonical one. With `'fast'` the order is free, and products may
   * be fused with sums. Integers are exact either way. Default `'fast'`.
   */
  determinism?: 'fast' | 'strict';
  /**
   * Says where the `.wasm` is and, with threads, `wgemm-thread.js`. Default: beside the script.
   */
  assets?: Assets;
  /**
   * The most bytes that tensors, copies and scratch may take. The memory begins with 1 MB, and 192
   * kB per thread if there are several. It never grows by more than `maxMemory` bytes beyond that,
   * in whole pages of 64 kB. Memory between fragments counts, too. A call that lacks memory runs
   * block by block, or fails. Default: what the engine allows, 4 GB at the most.
   */
  maxMemory?: number;
}

/** A micro-kernel of the build. */
export interface KernelInfo {
  /** States types, tile and instruction set. */
  name: string;
  /**
   * The type that it multiplies and accumulates in; int8 stands for both 8-bit types, which it
   * accumulates in int32.
   */
  dtype: DType;
  /** Rows and columns of its tile, and the steps of k that it takes at once. */
  tile: [mr: number, nr: number, kr: number];
  /** Made for this processor and engine. */
  preferred: boolean;
}

/** What an instance runs on. */
export interface Info {
  version: string;
  /** The build that runs. */
  build: 'simd128' | 'relaxed';
  threads: number;
  determinism: 'fast' | 'strict';
  /** Why this build and this number of threads. */
  why: string;
  /** Best first. */
  kernels: readonly KernelInfo[];
}

/** @internal Options of `createGemm`, checked. */
export interface Settings {
  readonly threads: number | 'auto';
  readonly simd: 'auto' | 'simd128' | 'relaxed';
  readonly determinism: Info['determinism'];
  readonly assets: Assets | undefined;
  readonly maxMemory: number | undefined;
}

/**
 * @internal Reads the options of `createGemm`.
 * @param besides names of options that something else reads
 */
export function readSettings(options: unknown, besides?: readonly string[]): Settings {
  const op = 'createGemm';
  const names = ['threads', 'simd', 'determinism', 'assets', 'maxMemory'];
  const {
    threads = 1,
    simd = 'auto',
    determinism = 'fast',
    assets,
    maxMemory,
  } = readOptions(op, options, names, 'options', besides) as CreateOptions;
  const refuse = (name: string, value: unknown, rule: string) =>
    new ArgumentError(op, name, `${op}: ${name} is ${describe(value)}; it must be ${rule}`);
  if (
    threads !== 'auto' &&
    !(Number.isSafeInteger(threads) && threads >= 1 && threads <= mostThreads)
  )
    throw refuse('threads', threads, `a whole number from 1 to ${mostThreads}, or 'auto'`);
  if (!['auto', 'simd128', 'relaxed'].includes(simd))
    throw refuse('simd', simd, "'auto', 'simd128' or 'relaxed'");
  if (!['fast', 'strict'].includes(determinism))
    throw refuse('determinism', determinism, "'fast' or 'strict'");
  if (assets !== undefined && typeof assets !== 'function')
    throw refuse('assets', assets, "a function from a file's name to where it is");
  if (maxMemory !== undefined && !(Number.isSafeInteger(maxMemory) && maxMemory >= 1))
    throw refuse('maxMemory', maxMemory, 'a whole number of bytes from 1');
  return { threads, simd, determinism, assets, maxMemory };
}

/** @internal Starts the core of an instance. The caller must end its threads, if it has several. */
export async function startCore(settings: Settings): Promise<{ core: Core; info: Info }> {
  const { simd, threads: wanted, assets, determinism, maxMemory } = settings;
  let die: (why: string) => void = () => undefined;
  const memoryLimit = Math.min(maxMemory ?? 0, 2 ** 32 - 1);
  const strict = determinism === 'strict';
  const load = { simd, threads: wanted, assets, memoryLimit, strict };
  const loaded = await loadCore(load, (why) => die(why));
  const { threads, why } = loaded;
  const core = new Core(loaded, memoryLimit);
  die = (why) => core.die('WORKER', `a thread of the instance died (${why})`);
  const kernels = kernelsOf(core);
  // By what the file has: the option assets may return either file.
  const build = kernels.some(({ name }) => name.includes('_relaxed')) ? 'relaxed' : 'simd128';
  return { core, info: { version, build, threads, determinism, why, kernels } };
}

type Six = [number, number, number, number, number, number];

function kernelsOf(core: Core): KernelInfo[] {
  return Array.from({ length: core.module.kernelCount() }, (_, i) => {
    core.module.kernel(i);
    const [name, dtype, mr, nr, kr, preferred] = core.block as unknown as Six;
    return {
      name: core.text(name),
      dtype: core.dtypes[dtype] as DType,
      tile: [mr, nr, kr],
      preferred: preferred !== 0,
    };
  });
}
