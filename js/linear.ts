/**
 * Layers compute y = activation(x * weights + bias). Weights, bias, scales and zero points stay in
 * the memory of an instance. This is an entry of its own, so that a page without layers does not
 * load it. For layers in a worker, import the same functions from `wgemm/worker`.
 *
 * @module wgemm/linear
 */
export {
  createLinear,
  deserializeLinear,
  type EitherLinearOptions,
  type FloatLinearOptions,
  type Int8FloatWeights,
  type Int8LinearOptions,
  type Int8Quantization,
  type Int8Weights,
  type Linear,
  type LinearInfo,
  type LinearInput,
  type LinearOptions,
  type LinearOutput,
  type Quantization,
} from './linear/create-linear.js';
