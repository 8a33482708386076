/** Types of decoder.mjs, for the tests in TypeScript. */
interface Sizes {
  layers: number;
  hidden: number;
  heads: number;
  keyHeads: number;
  head: number;
  intermediate: number;
  vocabulary: number;
  positions: number;
  theta: number;
}
interface Form {
  isPacked?: boolean;
  rotates?: boolean;
  hasBias?: boolean;
  hasNorms?: boolean;
  isSymmetric?: boolean;
  accuracyLevel?: number;
  blockSize?: number;
  headScale?: number;
  seed?: number;
}
export const smolLm2: Sizes;
export const smallDecoder: Sizes;
export function decoder(
  options: Sizes & Form & { location: string },
): Record<'bytes' | 'weights', Uint8Array>;
export function decoder(options?: Sizes & Form): Uint8Array;
export function keptOf(sizes: Sizes): Record<string, string>;
export function tokenFeeds(
  ids: readonly number[],
  past: number,
  form?: Form,
): Record<string, { dtype: 'int64'; shape: readonly number[]; data: BigInt64Array }>;
