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
   * Records an operator of src/nn/ with its inputs and outputs, which lie along the same axes, or
   * computes it at once.
   *
   * @param results how many of the last tensors are results
   * @returns false for a `Copy` that the caller must compute
   */
  step(
    name: string,
    dims: readonly number[],
    tensors: readonly StepTensor[],
    attributes: readonly number[],
    results: number,
  ): boolean;
  /** Whether it records, so that operators must not read elements which only a run knows. */
  readonly records: boolean;
}

let recorder: Recorder | undefined;

/** @internal Calls `body`, whose operators give their steps to `by`. */
export function recordBy<T>(by: Recorder, body: () => T): T {
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
export const isRecording = (): boolean => recorder?.records === true;

/** @internal As `Recorder.step`. */
export function record(
  name: string,
  dims: readonly number[],
  tensors: readonly StepTensor[],
  attributes: readonly number[] = [],
  results = 1,
): boolean {
  return (recorder as Recorder).step(name, dims, tensors, attributes, results);
}
