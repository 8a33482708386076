/** Elements of 16 bits: their conversions from numbers and to numbers. */

/** @internal A type of 16 bits, as tables: engines compile loops with tables well. */
export interface Half {
  /** The value of each code. */
  readonly values: Float32Array;
  /** The code of infinity. */
  readonly infinity: number;
  /** The code of the NaN that conversions return. */
  readonly quiet: number;
  /** Per exponent of a float32: what to subtract from its bits before they are shifted. */
  readonly offsets: Int32Array;
  /** Per exponent of a float32: by how many bits to shift its bits to get the code. */
  readonly shifts: Uint8Array;
}

/**
 * `shift`: the bits by which the fraction is shorter than the fraction of a float32. `normal`: the
 * biased exponent that the least normal number has in float32.
 */
function makeHalf(shift: number, normal: number, infinity: number): Half {
  const values = new Float32Array(2 ** 16);
  const bits = new Int32Array(values.buffer);
  for (let code = 0; code < 2 ** 16; ++code) {
    const magnitude = code & 0x7fff;
    const special = magnitude > infinity ? 0x7fc00000 : 0x7f800000;
    bits[code] = ((code & 0x8000) << 16) | (magnitude < infinity ? magnitude << shift : special);
    (values[code] as number) *= 2 ** (normal - 1);
  }
  const offsets = new Int32Array(256);
  // A normal number keeps its exponent. In others the leading 1 is part of the fraction.
  const shifts = Uint8Array.from(offsets, (_, exponent) => {
    const lacking = Math.max(normal - Math.max(exponent, 1), 0);
    offsets[exponent] = (normal - 1 - lacking) << 23;
    return Math.min(shift + lacking, 25);
  });
  return { values, infinity, quiet: infinity + (1 << (22 - shift)), offsets, shifts };
}

let float16: Half | undefined;
let bfloat16: Half | undefined;

/** @internal The type of a name; undefined if it does not have 16 bits. */
export function halfOf(dtype: unknown): Half | undefined {
  if (dtype === 'float16') return (float16 ??= makeHalf(13, 113, 0x7c00));
  return dtype === 'bfloat16' ? (bfloat16 ??= makeHalf(16, 1, 0x7f80)) : undefined;
}

/** @internal Rounds float32 numbers, given as bits, half to even. */
export function toHalves(
  codes: Uint16Array,
  bits: Int32Array,
  { infinity, quiet, offsets, shifts }: Half,
): void {
  for (let i = 0; i < codes.length; ++i) {
    const word = bits[i] as number;
    const magnitude = word & 0x7fffffff;
    const exponent = magnitude >> 23;
    const shift = shifts[exponent] as number;
    const exact = magnitude - (offsets[exponent] as number);
    // A fraction that is rounded up to the next power of two adds 1 to the exponent.
    const rounded = (exact + ((1 << (shift - 1)) - 1) + ((exact >> shift) & 1)) >> shift;
    const finite = rounded < infinity ? rounded : infinity;
    codes[i] = ((word >> 16) & 0x8000) | (magnitude > 0x7f800000 ? quiet : finite);
  }
}

const one = new Float32Array(1);
const itsBits = new Int32Array(one.buffer);
const itsCode = new Uint16Array(1);

/** @internal The code of a number, rounded half to even, once. */
export function encode(value: number, half: Half): number {
  one[0] = value;
  const nearest = one[0];
  // To round only once in all, round to float32 towards 0, and set the last bit for the rest.
  if (nearest !== value)
    itsBits[0] = ((itsBits[0] as number) - (Math.abs(nearest) > Math.abs(value) ? 1 : 0)) | 1;
  toHalves(itsCode, itsBits, half);
  return itsCode[0] as number;
}
