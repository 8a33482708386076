/** `createGemm` of `wgemm`, and the instance that it returns. */

import { disposable } from '../base/dispose.js';
import { printable } from '../base/printable.js';
import { makeCall } from '../call/run.js';
import { type Core, cores } from '../instance/core.js';
import { PackedWeights } from '../instance/heap.js';
import { type CreateOptions, type Info, readSettings, startCore } from '../instance/start-core.js';
import { allocTensor, memoryOf, type MemoryUse, readAlloc } from '../ops/alloc.js';
import { readAttention, runAttention } from '../ops/attention.js';
import { explainCall, type Explanation } from '../ops/explain.js';
import { runGemm } from '../ops/gemm.js';
import { runIntegerMatMul } from '../ops/integer-matmul.js';
import { runMatMulNBits } from '../ops/matmul-nbits.js';
import { runMatMul } from '../ops/matmul.js';
import { packWeights, readBytes, readPack, readWeights } from '../ops/pack.js';
import { runQGemm } from '../ops/qgemm.js';
import { readExplained } from '../ops/read-call.js';
import { record, type Recording } from '../ops/record.js';
import { runSyrk } from '../ops/syrk.js';
import type { Api } from './gemm.js';

/**
 * Starts an instance, with a memory of its own. The caller must `dispose()` of it.
 *
 * @example
 * const wg = await createGemm({ threads: 'auto', determinism: 'strict' });
 * wg.info.build; // 'relaxed' or 'simd128'
 * wg.dispose();
 *
 * @param options all have defaults
 * @returns a promise of the instance
 * @throws by rejection: ArgumentError; UnsupportedError if the engine or page lacks what an option
 * demands; GemmError with code `LOAD` or `WORKER` if a file or a thread does not start
 *
 * @category Instances
 */
export async function createGemm(options: CreateOptions = {}): Promise<Gemm> {
  const { core, info } = await startCore(readSettings(options));
  return new Instance(core, info);
}

/**
 * An instance. {@link createGemm} makes it. `x instanceof Gemm` tells whether x is one.
 *
 * The calls return their results at once. The instance keeps no array of the caller.
 *
 * @category Instances
 */
export interface Gemm extends Api<'here'> {
  /** Whether it has ended: by `dispose()`, or because the engine interrupted a call. */
  readonly disposed: boolean;

  /**
   * Ends the instance and its threads, and frees its memory with all tensors and packed weights.
   * Does nothing the second time.
   */
  dispose(): void;
  /** The same as `dispose()`, for `using`. */
  [Symbol.dispose](): void;
}

// The calls are declared in `Api`, which both entries share. For TypeScript a result of type
// `never` fits every overload.
const Instance = class Gemm implements Api<'here'> {
  readonly info: Info;
  readonly #core: Core;

  constructor(core: Core, info: Info) {
    this.#core = core;
    cores.set(this, core);
    if (info.threads > 1) core.endThreadsWith(this);
    this.info = Object.freeze(info);
    Object.freeze(this);
  }

  gemm(a: unknown, b: unknown, c?: unknown, options?: unknown): never {
    return runGemm(this.#core, a, b, c, options) as never;
  }

  qgemm(inputs: unknown, options?: unknown): never {
    return runQGemm(this.#core, inputs, options) as never;
  }

  matmul(src: unknown, weights: unknown, bias?: unknown, options?: unknown): never {
    return runMatMul(this.#core, src, weights, bias, options) as never;
  }

  matmulInteger(...args: unknown[]): never {
    return runIntegerMatMul(this.#core, 'matmulInteger', args) as never;
  }

  qlinearMatmul(...args: unknown[]): never {
    return runIntegerMatMul(this.#core, 'qlinearMatmul', args) as never;
  }

  dynamicQuantizeMatmul(...args: unknown[]): never {
    return runIntegerMatMul(this.#core, 'dynamicQuantizeMatmul', args) as never;
  }

  matmulIntegerToFloat(...args: unknown[]): never {
    return runIntegerMatMul(this.#core, 'matmulIntegerToFloat', args) as never;
  }

  matmulNBits(...args: unknown[]): never {
    return runMatMulNBits(this.#core, args) as never;
  }

  syrk(a: unknown, options?: unknown): never {
    return runSyrk(this.#core, a, options) as never;
  }

  attention(...args: unknown[]): never {
    return runAttention(this.#core, readAttention(this.#core, args)) as never;
  }

  pack(b: unknown, options: unknown): PackedWeights {
    return packWeights(this.#core, readPack(this.#core, b, options));
  }

  deserialize(bytes: unknown): PackedWeights {
    return readWeights(this.#core, readBytes(this.#core, bytes));
  }

  explain(op: unknown, ...args: unknown[]): Explanation {
    return explainCall(makeCall(this.#core, readExplained(this.#core, op, args)));
  }

  record(calls: unknown): Recording {
    return record(this.#core, calls);
  }

  alloc(dtype: unknown, shape: unknown): never {
    return allocTensor(this.#core, readAlloc(this.#core, dtype, shape)) as never;
  }

  memory(): MemoryUse {
    return memoryOf(this.#core);
  }

  get disposed(): boolean {
    return this.#core.disposed;
  }

  dispose(): void {
    this.#core.dispose();
  }

  declare [Symbol.dispose]: () => void;
};
disposable(Instance.prototype);
printable(Instance.prototype, (instance) => {
  const { inUse, committed } = instance.memory();
  return `${bestKernel(instance)}\n  memory: ${inUse} bytes in use, ${committed} committed`;
});

/** @internal The line about the kernel of large float32 products. */
export function bestKernel({ info }: { info: Info }): string {
  const best = info.kernels.find(
    ({ name, tile, preferred }) => preferred && tile[0] > 1 && /^f32_\d/.test(name),
  );
  return `best kernel: ${best?.name}`;
}

/**
 * The class of instances, for `instanceof`.
 *
 * @hidden The interface of the same name documents it.
 */
export const Gemm: abstract new (...args: never) => Gemm = Instance;
