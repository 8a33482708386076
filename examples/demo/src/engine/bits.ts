/** The same bits everywhere: the hash of a product in strict mode, and in fast mode. */
import { createGemm, type Gemm } from 'wgemm';
import { instance, threads } from './instance.ts';

const size = 256;
const elementsShown = 4;

export interface Bits {
  /** SHA-256 in hexadecimal; '' if this page has no crypto.subtle. */
  hash: string;
  build: string;
  threads: number;
  /** The first elements. */
  first: number[];
}

export interface BothBits {
  strict: Bits;
  fast: Bits;
  /** Elements of the two results whose bits differ, of how many. */
  different: number;
  count: number;
}

/** Computes the product in both modes. */
export async function compareBits(): Promise<BothBits> {
  const fast = multiplied(await instance());
  const strict = await multipliedStrictly();
  return {
    strict: await bitsOf(strict),
    fast: await bitsOf(fast),
    different: strict.y.reduce((sum, value, i) => sum + Number(!Object.is(value, fast.y[i])), 0),
    count: strict.y.length,
  };
}

async function multipliedStrictly() {
  const wg = await createGemm({ determinism: 'strict', threads });
  try {
    return multiplied(wg);
  } finally {
    wg.dispose(); // ends its threads, too
  }
}

/** Multiplies the matrices of code/bits.mjs: a visitor who pastes that code gets the same hash. */
function multiplied(wg: Gemm) {
  const matrix = (seed: number) => ({
    data: Float32Array.from({ length: size * size }, (_, i) => ((seed * i) % 1009) / 1009 - 0.5),
    shape: [size, size],
  });
  return { y: wg.gemm(matrix(17), matrix(31)).data, info: wg.info };
}

async function bitsOf({ y, info }: ReturnType<typeof multiplied>): Promise<Bits> {
  return {
    hash: await sha256(y),
    build: info.build,
    threads: info.threads,
    first: [...y.subarray(0, elementsShown)],
  };
}

/** SHA-256 of the bytes; '' if the page is not secure: browsers then have no crypto.subtle. */
async function sha256(y: Float32Array<ArrayBuffer>): Promise<string> {
  const crypto = globalThis.crypto as Crypto | undefined;
  if (!crypto?.subtle) return '';
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', y));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
