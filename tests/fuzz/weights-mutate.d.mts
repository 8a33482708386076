/** Types of weights-mutate.mjs, for the tests in TypeScript. */
import type { Gemm, GemmError } from 'wgemm';
import type * as weights from 'wgemm/weights';

/** How many files were read, and tensors loaded, converted and packed. */
export interface Reached {
  read: number;
  loaded: number;
  converted: number;
  packed: number;
}

type Modules = typeof weights & { wg: Gemm; GemmError: typeof GemmError };

export function fileOf(seed: number): [format: string, bytes: Uint8Array];
export function tryFile(seed: number, modules: Modules, reached: Reached): Promise<void>;
export function tryBlocks(
  seed: number,
  modules: Modules,
  reached: { packed: number },
): Promise<void>;
export function expectClear(error: GemmError): void;
