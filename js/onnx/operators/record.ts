/**
 * How operators record what they would compute. While a run is recorded, an operator computes from
 * elements that are known already. For the others it records steps, which src/nn/ computes.
 */
import type { Value } from '../read/value.js';

/** @internal A tensor of a step. */
export interface StepTensor {
  readonly value: Value;
  /** Elements, one per axis of the step; 0 for a tensor that is broadcast. */
  readonly strides: readonly number[];
  /** The index of the first element. */
  readonly start: number;
}

/** @internal Takes the steps of a run. */
export interface Recorder {
  /**
   * Records an operator of src/nn/ with its inputs and outputs, which lie along the same axes.
   *
   * @returns whether it was recorded; if not, the caller computes
   */
  step(
    name: string,
    dims: readonly number[],
    tensors: readonly StepTensor[],
    attributes: readonly number[],
  ): boolean;
}

let recorder: Recorder | undefined;

/** @internal Calls `body`, whose operators record with `by`; without it, they compute. */
export function recordBy<T>(by: Recorder | undefined, body: () => T): T {
  const before = recorder;
  recorder = by;
  try {
    return body();
  } finally {
    recorder = before;
  }
}

/** @internal Ends a recording that the engine has interrupted without an exception. */
export function endRecording(): void {
  recorder = undefined;
}

/** @internal Whether operators record now. */
export const isRecording = (): boolean => recorder !== undefined;

/** @internal Records a step, if a run is recorded and the step can be. */
export function record(
  name: string,
  dims: readonly number[],
  tensors: readonly StepTensor[],
  attributes: readonly number[] = [],
): boolean {
  return recorder !== undefined && recorder.step(name, dims, tensors, attributes);
}
