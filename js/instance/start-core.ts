/** `createGemm`: its options, and the core that it starts. */
import { ArgumentError, describe } from '../base/errors.js';
import { readOptions } from '../base/read-options.js';
import type { DType } from '../base/tensor.js';
import { Core } from './core.js';
import { type Assets, loadCore } from './load.js';
import { mostThreads } from './threads/threads.js';
import { watchVectors } from './vectors.js';

/**
 * The version of the library.
 *
 * @category Instances
 */
export const version = '0.1.0';

/**
 * Options of `createGemm`.
 *
 * @category Instances
 */
export interface CreateOptions {
  /**
   * Number of threads that compute large products, including the caller's own: 1 to 64, or
   * `'auto'`. `'auto'` takes one per processor, or one less if there are more than four, and at
   * most 16. It takes 1 if the page or engine cannot have more. For a number that they cannot have,
   * `createGemm` throws an UnsupportedError. If a thread does not start, it throws a GemmError with
   * code `WORKER`. Threads need shared memory, for which a page must be cross-origin isolated. They
   * end on `dispose()`. The number does not change results. Default 1.
   */
  threads?: number | 'auto' | undefined;
  /**
   * The build. `'relaxed'` uses relaxed SIMD, which fuses products and sums in float32 and float64
   * if the processor can. `'auto'` takes it if the engine has it and fuses. Default `'auto'`.
   */
  simd?: 'auto' | 'simd128' | 'relaxed' | undefined;
  /**
   * `'strict'` produces the same bits in every engine, on every processor, in every build, for any
   * number of threads. Floating point is then summed in ascending k, each product and each sum is
   * rounded, and every NaN is the canonical one. With `'fast'` the order is free, and products may
   * be fused with sums. Integers are exact either way. Default `'fast'`.
   */
  determinism?: 'fast' | 'strict' | undefined;
  /**
   * Bytes of the vectors that kernels are chosen for. V8 can join two vectors of 16 bytes to one of
   * 32, with a flag that is an experiment: see the guide. 32 is for an engine with that flag; in
   * any other, it makes calls slower. `'auto'` begins with 16, and changes to 32 when short
   * measurements after some calls have shown that the engine joins vectors. A page must be
   * cross-origin isolated for this, since other pages have a coarse clock. Results have the same
   * bits either way. Default 16.
   */
  vectors?: 16 | 32 | 'auto' | undefined;
  /**
   * Loads the module that also has the operators of models, which `loadModel()` needs. Default
   * false.
   */
  models?: boolean | undefined;
  /**
   * Says where the `.wasm` is, and with threads `wgemm-thread.js`. Default: next to the script.
   */
  assets?: Assets | undefined;
  /**
   * The most bytes that tensors, packed weights, copies and scratch memory may take, from 1. The
   * memory begins with 1 MiB, and 192 KiB per thread if there are several. It never grows by more
   * than `maxMemory` bytes beyond that, in whole pages of 64 KiB. Free memory between tensors
   * counts, too. If a call lacks memory, it runs out-of-core or fails. Default: the limit of the
   * engine, at most 4 GiB.
   */
  maxMemory?: number | undefined;
}

/**
 * An instance, or options of `createGemm` for a new one: not both. The new one gets the module that
 * its creator needs, so that `models` is not an option.
 *
 * @typeParam W the class of the instance
 * @category Instances
 */
export type InstanceOptions<W> =
  | (Omit<CreateOptions, 'models'> & {
      /** Absent: the call creates an instance, which ends with what the call returns. */
      wg?: undefined;
    })
  | ({
      /** The instance that computes. It stays the caller's, who must dispose of it afterwards. */
      wg?: W | undefined;
    } & { [Name in Exclude<keyof CreateOptions, 'models'>]?: undefined });

/**
 * A micro-kernel of the build.
 *
 * @category Instances
 */
export interface KernelInfo {
  /** The name, which states types, layout of B, tile and instruction set. */
  name: string;
  /**
   * The type in which it multiplies and accumulates. 'int8' means both 8-bit types, which it
   * accumulates in int32.
   */
  dtype: DType;
  /** Rows (MR) and columns (NR) of its tile, in elements, and k steps per iteration. */
  tile: [mr: number, nr: number, kr: number];
  /** Whether it is made for this processor, engine and size of vectors, at the start. */
  preferred: boolean;
}

/**
 * The build, threads and kernels of an instance.
 *
 * @category Instances
 */
export interface Info {
  /** The version of the library. */
  version: string;
  /** The build that runs. */
  build: 'simd128' | 'relaxed';
  /** Number of threads, including the caller's own. */
  threads: number;
  /** As in the options of `createGemm`. */
  determinism: 'fast' | 'strict';
  /** As in the options of `createGemm`. `explain()` tells which are in use. */
  vectors: 16 | 32 | 'auto';
  /** Why this build and this number of threads. */
  why: string;
  /** The micro-kernels, best first. */
  kernels: readonly KernelInfo[];
}

/** @internal Options of `createGemm`, checked. */
export interface Settings {
  readonly threads: number | 'auto';
  readonly simd: 'auto' | 'simd128' | 'relaxed';
  readonly determinism: Info['determinism'];
  readonly vectors: Info['vectors'];
  readonly models: boolean;
  readonly assets: Assets | undefined;
  readonly maxMemory: number | undefined;
}

/**
 * @internal Reads the options of `createGemm`.
 * @param besides names of options that something else reads
 */
export function readSettings(options: unknown, besides?: readonly string[]): Settings {
  const op = 'createGemm';
  const names = ['threads', 'simd', 'determinism', 'vectors', 'models', 'assets', 'maxMemory'];
  const {
    threads = 1,
    simd = 'auto',
    determinism = 'fast',
    vectors = 16,
    models = false,
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
  if (![16, 32, 'auto'].includes(vectors)) throw refuse('vectors', vectors, "16, 32 or 'auto'");
  if (typeof models !== 'boolean') throw refuse('models', models, 'a boolean');
  if (assets !== undefined && typeof assets !== 'function')
    throw refuse('assets', assets, 'a function that returns the address or the bytes of a file');
  if (maxMemory !== undefined && !(Number.isSafeInteger(maxMemory) && maxMemory >= 1))
    throw refuse('maxMemory', maxMemory, 'a whole number of bytes, 1 or more');
  return { threads, simd, determinism, vectors, models, assets, maxMemory };
}

/** @internal Starts the core of an instance. The caller must end its threads, if it has several. */
export async function startCore(settings: Settings): Promise<{ core: Core; info: Info }> {
  const { simd, threads: wanted, models, assets, determinism, vectors, maxMemory } = settings;
  let die: (why: string) => void = () => undefined;
  const memoryLimit = Math.min(maxMemory ?? 0, 2 ** 32 - 1);
  const strict = determinism === 'strict';
  const load = { simd, threads: wanted, models, assets, memoryLimit, strict };
  const loaded = await loadCore(load, (why) => die(why));
  const { threads, why } = loaded;
  const core = new Core(loaded, memoryLimit);
  die = (why) => core.die('WORKER', `a thread of the instance died (${why})`);
  if (vectors === 'auto') watchVectors(core.module);
  if (vectors === 32) core.module.setVectors(vectors);
  const kernels = kernelsOf(core);
  // The kernels tell the build, since the option `assets` may return the file of either.
  const build = kernels.some(({ name }) => name.includes('_relaxed')) ? 'relaxed' : 'simd128';
  return { core, info: { version, build, threads, determinism, vectors, why, kernels } };
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
