/** Types of small.mjs, for the tests in TypeScript. */
export const smallModels: readonly {
  name: string;
  variant: string;
  bytes: () => Uint8Array;
  feeds: () => Record<string, { dtype: 'float32'; shape: readonly number[]; data: Float32Array }>;
}[];
