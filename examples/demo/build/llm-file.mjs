// The form of the file of the language model. Build time writes it, the engine reads it. Its
// weights are bfloat16: half the bytes of float32, and closer to it than int8 is.
import { matricesOf } from '../../tiny-llm/model.mjs';

/** The sizes of the model, of which a build learns all weights in about a minute. */
export const sizes = { size: 96, layers: 2, heads: 4, context: 96 };

const lengthOf = ({ shape }) => shape[0] * shape[1];

/** Bytes of the file. */
export const fileBytes = 2 * matricesOf(sizes).reduce((sum, matrix) => sum + lengthOf(matrix), 0);

/** The bytes of a model: the upper halves of its weights, rounded to nearest even. */
export function writeModel({ weights }) {
  const halves = new Uint16Array(fileBytes / 2);
  let at = 0;
  for (const { name } of matricesOf(sizes)) {
    for (const bits of new Uint32Array(weights[name].slice().buffer))
      halves[at++] = (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
  }
  return Buffer.from(halves.buffer);
}

/** The model of such bytes, in float32. */
export function readModel(bytes) {
  const halves = new Uint16Array(bytes.slice().buffer);
  const weights = {};
  let at = 0;
  for (const matrix of matricesOf(sizes)) {
    const bits = Uint32Array.from(
      halves.subarray(at, (at += lengthOf(matrix))),
      (half) => half << 16,
    );
    weights[matrix.name] = new Float32Array(bits.buffer);
  }
  return { sizes, weights };
}
