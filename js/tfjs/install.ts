/** `install`: replaces kernels of TensorFlow.js. */
import { createGemm, type Gemm } from '../api/create-gemm.js';
import { ArgumentError, describe } from '../base/errors.js';
import { isReadable } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import { type Core, cores } from '../instance/core.js';
import type { InstanceOptions } from '../instance/start-core.js';
import {
  type Functions,
  isReplaced,
  type KernelConfig,
  kernelNames,
  type LastReshaped,
  replacementOf,
  watchReshape,
} from './kernels.js';
import { keepWeights } from './weights.js';

/**
 * The functions of TensorFlow.js that {@link install} needs. The namespaces of
 * `@tensorflow/tfjs-core` and `@tensorflow/tfjs` have them.
 *
 * @category TensorFlow.js
 */
export interface Tfjs {
  /**
   * Returns a kernel, or undefined if the backend has none of this name.
   *
   * @param kernelName the name of the operation
   * @param backendName the name of the backend
   */
  getKernel(kernelName: string, backendName: string): TfjsKernel | undefined;
  /**
   * Registers a kernel.
   *
   * @param config the kernel
   */
  registerKernel(config: TfjsKernel): void;
  /**
   * Removes a kernel.
   *
   * @param kernelName the name of the operation
   * @param backendName the name of the backend
   */
  unregisterKernel(kernelName: string, backendName: string): void;
}

/**
 * A kernel, as TensorFlow.js registers it. Its functions are not described here.
 *
 * @category TensorFlow.js
 */
export interface TfjsKernel {
  /** The name of the operation. */
  kernelName: string;
  /** The name of the backend. */
  backendName: string;
}

/**
 * Options of {@link install}. An instance that it creates ends when the kernels are restored.
 *
 * @category TensorFlow.js
 */
export type InstallOptions = InstanceOptions<Gemm> & {
  /**
   * True: wgemm computes all float32 products, also of sizes at which the old kernel is
   * faster. With `determinism: 'strict'` they have the same bits everywhere. Default false.
   */
  always?: boolean | undefined;
};

const op = 'install';
const backendNames = ['wasm', 'cpu'];

/**
 * Replaces the kernels of matrix products in the `wasm` and `cpu` backends of TensorFlow.js, those
 * that are registered. It also observes Reshape. The replacements compute float32 products by
 * wgemm. They call the old kernel for other types, for sizes at which it is faster, and after the
 * instance has ended.
 *
 * If `b` of a product is the same tensor as before, its packed copy is kept until the tensor is
 * disposed. So the caller must not change the array that a tensor of the `cpu` backend was made of.
 *
 * @example
 * import * as tf from '@tensorflow/tfjs-core';
 * import '@tensorflow/tfjs-backend-wasm';
 * import { install } from 'wgemm/tfjs';
 *
 * await tf.setBackend('wasm');
 * const remove = await install(tf);
 * // tf.matMul, tf.fused.matMul and dense layers are faster now.
 * remove();
 *
 * @param tf the namespace of TensorFlow.js. Import its backends before the call
 * @param options all have defaults
 * @returns a function that restores the kernels, and frees the packed weights and an instance that
 * `install` made. It does nothing the second time
 * @throws by rejection: ArgumentError, also if wgemm is installed already; DisposedError; and what
 * `createGemm` throws
 *
 * @category TensorFlow.js
 */
export async function install(tf: Tfjs, options: InstallOptions = {}): Promise<() => void> {
  const functions = readFunctions(tf);
  checkKernels(functions);
  const { wg: given, always, settings } = readInstallOptions(options);
  const wg = given ?? (await createGemm(settings));
  return replace(functions, wg, always, given === undefined);
}

function refused(name: string, found: string, rule: string): ArgumentError {
  return new ArgumentError(op, name, `${op}: ${name} ${found}; ${rule}`);
}

/** Reads the functions of tf, once: a namespace may have getters. */
function readFunctions(tf: unknown): Functions {
  // The default export of a CommonJS module is a function in some bundles.
  const isObject = isReadable(tf) || typeof tf === 'function';
  if (!isObject)
    throw refused('tf', `is ${describe(tf)}`, 'it must be the namespace of TensorFlow.js');
  const { getKernel, registerKernel, unregisterKernel } = tf as Partial<Functions>;
  for (const [name, value] of Object.entries({ getKernel, registerKernel, unregisterKernel }))
    if (typeof value !== 'function')
      throw new ArgumentError(
        op,
        'tf',
        `${op}: tf.${name} is ${describe(value)}; ` +
          'pass the namespace of TensorFlow.js, and await a promise of it',
      );
  return { getKernel, registerKernel, unregisterKernel } as Functions;
}

/** The kernels to replace. Throws if there are none, or they are replaced already. */
function checkKernels({ getKernel }: Functions): KernelConfig[] {
  const found: KernelConfig[] = [];
  for (const backendName of backendNames) {
    for (const kernelName of kernelNames) {
      const kernel = getKernel(kernelName, backendName);
      if (kernel === undefined) continue;
      if (!isReadable(kernel) || typeof kernel.kernelFunc !== 'function')
        throw refused(
          'tf',
          `has kernel ${kernelName} of ${backendName}, which is ${describe(kernel)}`,
          'it must be an object with a kernelFunc, as in TensorFlow.js',
        );
      if (isReplaced(kernel))
        throw refused(
          'tf',
          'has wgemm installed',
          'first call the function that install() returned',
        );
      found.push(kernel);
    }
  }
  if (found.length > 0) return found;
  const names = backendNames.map((name) => `'${name}'`).join(' or ');
  throw refused(
    'tf',
    `has no kernel ${kernelNames.join(' or ')} of the backend ${names}`,
    'first import @tensorflow/tfjs-backend-wasm or @tensorflow/tfjs-backend-cpu',
  );
}

const createOptions = ['threads', 'simd', 'determinism', 'vectors', 'assets', 'maxMemory'] as const;

/** Reads the options. `settings`: options of `createGemm`, which checks their values. */
function readInstallOptions(options: unknown) {
  const read = readOptions(op, options, ['wg', 'always', ...createOptions]) as InstallOptions;
  const { wg, always = false, threads, simd, determinism, vectors, assets, maxMemory } = read;
  const settings = { threads, simd, determinism, vectors, assets, maxMemory };
  if (typeof always !== 'boolean')
    throw refused('always', `is ${describe(always)}`, 'it must be a boolean');
  if (wg === undefined) return { wg, always, settings };
  const core = cores.get(wg);
  if (!core)
    throw refused(
      'wg',
      `is ${describe(wg)}`,
      'it must be an instance of wgemm, not of wgemm/worker or wgemm/inline',
    );
  core.checkAlive(op);
  const name = createOptions.find((name) => settings[name] !== undefined);
  if (name) throw new ArgumentError(op, name, `${op}: pass either wg or ${name}, not both`);
  return { wg, always, settings };
}

/** Replaces the kernels. Returns the function that restores them. */
function replace(functions: Functions, wg: Gemm, always: boolean, isOwn: boolean) {
  const { getKernel, registerKernel, unregisterKernel } = functions;
  const core = cores.get(wg) as Core;
  const weights = keepWeights(wg, core.maxMemory);
  const last: LastReshaped = [null, null];
  const replaced: { old: KernelConfig; kernel: KernelConfig }[] = [];
  const register = (old: KernelConfig, kernel: KernelConfig) => {
    replaced.push({ old, kernel });
    unregisterKernel(old.kernelName, old.backendName);
    registerKernel(kernel);
  };
  let isInstalled = true;
  const remove = () => {
    if (!isInstalled) return;
    isInstalled = false;
    weights.dispose();
    if (isOwn) wg.dispose();
    for (const { old, kernel } of replaced) {
      const { kernelName, backendName } = old;
      const present = getKernel(kernelName, backendName);
      // If somebody has replaced ours, that kernel may call ours, which now calls the old one.
      if (present && present !== kernel) continue;
      if (present) unregisterKernel(kernelName, backendName);
      registerKernel(old);
    }
  };
  try {
    // Others may have installed wgemm while the instance started.
    for (const old of checkKernels(functions)) {
      const isActive = () => isInstalled && !wg.disposed;
      const isWasm = old.backendName === 'wasm';
      const context = { functions, core, always, weights, last, old, isWasm, isActive };
      register(old, replacementOf({ ...context, threads: wg.info.threads }));
    }
    for (const backendName of backendNames) {
      const reshape = getKernel('Reshape', backendName);
      if (reshape) register(reshape, watchReshape(reshape, last));
    }
  } catch (error) {
    remove();
    throw error;
  }
  return remove;
}
