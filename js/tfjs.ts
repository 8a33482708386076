/**
 * Matrix products of TensorFlow.js by wgemm. {@link install} replaces the kernels behind
 * `tf.matMul`, `tf.fused.matMul` and dense layers, in the `wasm` and `cpu` backends. This is an
 * entry of its own, so that a page without TensorFlow.js does not load it.
 *
 * @module wgemm/tfjs
 */
export { install, type InstallOptions, type Tfjs, type TfjsKernel } from './tfjs/install.js';
