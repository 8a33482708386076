/** Types of weights-mutate.mjs, for the tests in TypeScript. */
import type { GemmError } from 'wgemm';
import type * as weights from 'wgemm/weights';

/** How many files were read, tensors loaded, and tensors converted. */
export interface Reached {
  read: number;
  loaded: number;
  converted: number;
}

export function fileOf(seed: number): [format: string, bytes: Uint8Array];
export function tryFile(
  seed: number,
  wgemm: typeof weights & { GemmError: typeof GemmError },
  reached: Reached,
): Promise<void>;
export function expectClear(error: GemmError): void;
