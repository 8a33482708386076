/** Types of onnx-graphs.mjs, for the tests in TypeScript. */
import type { TensorSpec } from './onnx-model.mjs';

export function maker(seed?: number): {
  list: TensorSpec[];
  random(): number;
  floats(name: string, shape: readonly number[], most?: number): string;
  bytes(
    name: string,
    dtype: 'int8' | 'uint8',
    shape: readonly number[],
    least?: number,
    most?: number,
  ): string;
  scalar(name: string, dtype: 'float32' | 'int8' | 'uint8', value: number): string;
  ints(name: string, values: readonly number[]): string;
};
export function mlp(options?: {
  sizes?: readonly number[];
  batch?: number | string;
  seed?: number;
  isWhole?: boolean;
}): Uint8Array;
export function encoderBlock(options?: {
  heads?: number;
  size?: number;
  hidden?: number;
  batch?: number | string;
  tokens?: number | string;
  gelu?: 'erf' | 'op';
  seed?: number;
}): Uint8Array;
export function int8Mlp(options?: {
  inputs?: number;
  hidden?: number;
  outputs?: number;
  seed?: number;
}): Uint8Array;
export function dynamicMlp(options?: { size?: number; seed?: number }): Uint8Array;
export function nbitsMlp(options?: {
  sizes?: readonly number[];
  blockSize?: number;
  seed?: number;
}): Uint8Array;
