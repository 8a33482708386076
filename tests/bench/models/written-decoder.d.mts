/** Types of written-decoder.mjs, for the tests in TypeScript. */
import type { smallDecoder } from './decoder.mjs';

export function writtenDecoder(
  options: typeof smallDecoder & { accuracyLevel?: number; seed?: number },
): Uint8Array;
