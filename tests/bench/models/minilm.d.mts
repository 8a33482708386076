/** Types of minilm.mjs, for the tests in TypeScript. */
export function miniLm(options?: {
  variant?: 'float32' | 'int8';
  layers?: number;
  seed?: number;
  types?: boolean;
  pooled?: boolean;
}): Uint8Array;
export function textsOf(options: {
  batch?: number;
  tokens: number;
  seed?: number;
}): Record<string, { dtype: 'int64'; shape: readonly number[]; data: BigInt64Array }>;
