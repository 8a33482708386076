/** Types of calls.mjs, for the tests in TypeScript. */
import type { CreateOptions, Gemm } from 'wgemm';
import type { createLinear } from 'wgemm/linear';

export interface Instance {
  name: string;
  isStrict: boolean;
  wg: Gemm;
}

export function instancesOf(
  createGemm: (options: CreateOptions) => Promise<Gemm>,
  options: CreateOptions,
): Promise<Instance[]>;

export function tryCall(
  seed: number,
  whole: Gemm,
  instances: readonly Instance[],
  make: typeof createLinear,
): { faults: string[]; outOfCore: number };

export function instancesOfThreads(
  createGemm: (options: CreateOptions) => Promise<Gemm>,
  simd: 'simd128' | 'relaxed',
): Promise<Instance[]>;

export function tryThreads(
  seed: number,
  instances: readonly Instance[],
  make: typeof createLinear,
): string[];
