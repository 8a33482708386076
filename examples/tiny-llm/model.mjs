// What the model is: a decoder-only transformer, for Node and for browsers.
//
//   x = sum over the last four tokens of embedding[distance][token]
//   for each layer:
//     q, k, v = norm(x) * qkv
//     x += concat over heads of (softmax(q k' / sqrt(width) + bias) v) * out
//     x += relu(norm(x) * up) * down
//   scores = norm(x) * head
//
// norm() divides each row by its root mean square: Zhang and Sennrich, "Root Mean Square Layer
// Normalization" (2019). The bias falls with the distance of two tokens, so nothing else states
// positions: Press et al., "Train Short, Test Long" (2022).
import { alphabet } from './alphabet.mjs';

/** The sizes of a model. `context` is the number of tokens that attention looks at. */
const sizeNames = ['size', 'layers', 'heads', 'context'];

/** Each position reads its own token and the three before it. */
export const recent = 4;

/** The matrices of a model, in the order of a file: name and shape. */
export function matricesOf({ size, layers }) {
  const ofLayers = Array.from({ length: layers }, (_, i) => [
    { name: `${i}.qkv`, shape: [size, 3 * size] },
    { name: `${i}.out`, shape: [size, size] },
    { name: `${i}.up`, shape: [size, 4 * size] },
    { name: `${i}.down`, shape: [4 * size, size] },
  ]);
  return [
    { name: 'embedding', shape: [recent * alphabet.length, size] },
    ...ofLayers.flat(),
    { name: 'head', shape: [size, alphabet.length] },
  ];
}

/**
 * A model of random weights: { sizes, weights }. `weights` has a Float32Array per matrix. A matrix
 * whose product adds to x begins at zero, so each layer begins as the identity.
 */
export function createModel(sizes, random) {
  const weights = {};
  for (const { name, shape } of matricesOf(sizes)) {
    const isZero = name === 'head' || name.endsWith('.out') || name.endsWith('.down');
    const spread = isZero ? 0 : name === 'embedding' ? 1 : 1 / Math.sqrt(shape[0]);
    weights[name] = Float32Array.from({ length: shape[0] * shape[1] }, () =>
      isZero ? 0 : spread * normal(random),
    );
  }
  return { sizes, weights };
}

/** What attention adds to a score per token of distance, for each head. */
export const slopesOf = ({ heads }) => Array.from({ length: heads }, (_, i) => -(2 ** (-i - 2)));

/** Calls visit(start of a row of the embedding) for each of the last tokens at `position`. */
export function visitRecent(tokens, position, first, size, visit) {
  for (let distance = 0; distance < recent && position - distance >= first; ++distance)
    visit((distance * alphabet.length + tokens[position - distance]) * size);
}

const mark = 0x6d6c6c74; // 'tllm'
const headerLength = 1 + sizeNames.length;

/** The bytes of a model: a mark, the sizes, and the weights in float32. */
export function toBytes({ sizes, weights }) {
  const header = Uint32Array.of(mark, ...sizeNames.map((name) => sizes[name]));
  const arrays = [header, ...matricesOf(sizes).map(({ name }) => weights[name])];
  const bytes = new Uint8Array(arrays.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const { buffer, byteOffset, byteLength } of arrays) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += byteLength;
  }
  return bytes;
}

/** The model of such bytes. Throws an Error if they are not a model. */
export function fromBytes(bytes) {
  const { buffer } = Uint8Array.from(bytes); // begins at a multiple of 4
  const isLongEnough = buffer.byteLength >= 4 * headerLength;
  const header = isLongEnough ? new Uint32Array(buffer, 0, headerLength) : [];
  const sizes = Object.fromEntries(sizeNames.map((name, i) => [name, header[i + 1]]));
  const refuse = () => {
    throw new Error('These are not the bytes of a model.');
  };
  if (header[0] !== mark || sizes.layers > 1000) refuse();
  const weights = {};
  let at = 4 * headerLength;
  for (const { name, shape } of matricesOf(sizes)) {
    const length = shape[0] * shape[1];
    if (at + 4 * length > buffer.byteLength) refuse();
    weights[name] = new Float32Array(buffer, at, length);
    at += 4 * length;
  }
  if (at !== buffer.byteLength) refuse();
  return { sizes, weights };
}

/** Normally distributed, by Box and Muller. */
function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
