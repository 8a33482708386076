// Numbers for the example: bfloat16, softmax, differences.

/** The upper halves of float32, rounded to nearest even. For finite numbers. */
export function toBfloat16(values) {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(values.length);
  for (let i = 0; i < bits.length; ++i)
    halves[i] = (bits[i] + 0x7fff + ((bits[i] >>> 16) & 1)) >>> 16;
  return halves;
}

export function fromBfloat16(halves) {
  return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
}

/** Softmax of each row of `columns` scores, in place. */
export function softmax(scores, columns) {
  for (let start = 0; start < scores.length; start += columns) {
    const end = start + columns;
    let highest = -Infinity;
    for (let i = start; i < end; ++i) highest = Math.max(highest, scores[i]);
    let sum = 0;
    // Each is at most 1, so that nothing overflows.
    for (let i = start; i < end; ++i) sum += scores[i] = Math.exp(scores[i] - highest);
    for (let i = start; i < end; ++i) scores[i] /= sum;
  }
}

/** The largest difference, relative to the largest magnitude. */
export function difference(a, b) {
  let largest = 0;
  let magnitude = 0;
  b.forEach((value, i) => {
    largest = Math.max(largest, Math.abs(a[i] - value));
    magnitude = Math.max(magnitude, Math.abs(value));
  });
  return largest / magnitude;
}
