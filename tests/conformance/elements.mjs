// Elements of tensors in test vectors: their array, and the numbers that they mean.
const arrays = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array, // the bits
  bfloat16: Uint16Array, // the bits
  int8: Int8Array,
  uint8: Uint8Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
};

/** The array for the elements of a type. */
export const arrayOf = (dtype) => arrays[dtype];

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

/** An element as a number; 64-bit integers as bigints. */
export function valueOf(dtype, element) {
  if (dtype === 'float16') {
    const fraction = element & 0x3ff;
    const exponent = (element >> 10) & 0x1f;
    const size =
      exponent === 0x1f
        ? fraction
          ? NaN
          : Infinity
        : exponent
          ? (1024 + fraction) * 2 ** (exponent - 25)
          : fraction * 2 ** -24;
    return element & 0x8000 ? -size : size;
  }
  if (dtype === 'bfloat16') {
    bits[0] = element << 16;
    return float[0];
  }
  return element;
}

/** A number of float32 as an element of a floating-point type, rounded to nearest even. */
export function elementOf(dtype, value) {
  if (dtype === 'bfloat16') {
    float[0] = value;
    return Math.min(bits[0] + 0x7fff + ((bits[0] >>> 16) & 1), 0xffffffff) >>> 16; // except of NaN
  }
  if (dtype === 'float16') {
    const size = Math.abs(value);
    const exponent = Math.max(size === 0 ? -14 : Math.floor(Math.log2(size)), -14);
    const steps = size / 2 ** (exponent - 10);
    const below = Math.floor(steps);
    const up = steps - below > 0.5 || (steps - below === 0.5 && below % 2 === 1);
    // A normal number's hidden bit carries into the exponent, which makes it 1 above the exponent
    // of a subnormal number.
    return (
      Math.min((exponent + 14) * 1024 + below + up, 0x7c00) +
      (value < 0 || Object.is(value, -0) ? 0x8000 : 0)
    );
  }
  return value;
}
