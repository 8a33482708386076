// Runs a case on an instance, with its tensors in every kind of place. Knows which operations there are; nothing of files.
import { difference, gemmBound } from './compare.mjs';
import { arrayOf } from './vectors.mjs';

/** The operations that the package has: how each is called, and the bound of its results. */
const operations = {
  Gemm: { call: (wg, [a, b, c], options) => wg.gemm(a, b, c, options), bound: gemmBound },
};

export const isSupported = ({ op }) => op in operations;

/** What is in gaps, and where a result must come to be. */
const fillerOf = (dtype) => (dtype.endsWith('int64') ? 77n : 77);

/** Each makes a tensor like one of a case, with its elements or, as an output, without. */
const places = {
  'new output': (_, tensor) => tensor,
  heap(wg, { dtype, shape, data }) {
    const tensor = wg.alloc(dtype, shape);
    elementsOf(tensor).set(data);
    return tensor;
  },
  'strides with gaps'(_, tensor) {
    const strides = [];
    let next = 2;
    for (let axis = tensor.shape.length - 1; axis >= 0; --axis) {
      strides[axis] = next;
      next = next * tensor.shape[axis] + 1;
    }
    return scatter(tensor, strides);
  },
  'column-major'(_, tensor) {
    let next = 1;
    const strides = tensor.shape.map((size) => (next *= size || 1) / (size || 1));
    return scatter(tensor, strides);
  },
};

/** What is wrong, as a sentence; undefined if all is right. */
export function check(wg, kase) {
  for (const [name, place] of Object.entries(places)) {
    const wrong = checkIn(wg, kase, (tensor) => place(wg, tensor), name !== 'new output');
    if (wrong) return `${name}: ${wrong}`;
  }
  return undefined;
}

function checkIn(wg, kase, place, givesOut) {
  const { op, opset, attrs, inputs, outputs, tolerance, expect } = kase;
  const [wanted] = outputs;
  const placed = inputs.map((tensor) => tensor && place(tensor));
  const options = { ...attrs, opset };
  if (givesOut && wanted) {
    options.out = place({ ...wanted, data: wanted.data.slice().fill(fillerOf(wanted.dtype)) });
  }
  try {
    let y;
    try {
      y = operations[op].call(wg, placed, options);
    } catch (error) {
      // Only an error of the library's own, which names the argument at fault, is a refusal.
      return expect === 'reject' && error.argument ? undefined : `expected a ${expect === 'reject' ? 'refusal' : 'result'}, found ${error}`;
    }
    if (expect === 'reject') return 'expected a refusal, found a result';
    if (options.out && y !== options.out) return 'what the call returns is not its output';
    if (`${y.dtype} [${y.shape}]` !== `${wanted.dtype} [${wanted.shape}]`) {
      return `expected ${wanted.dtype} [${wanted.shape}], found ${y.dtype} [${y.shape}]`;
    }
    return difference(wanted, gather(y), operations[op].bound(kase), tolerance) ?? strayWrite(y);
  } finally {
    for (const tensor of [...placed, options.out]) tensor?.dispose?.();
  }
}

/** The elements as they are stored: a Float16Array as its bits. */
function elementsOf({ dtype, data }) {
  return new (arrayOf(dtype))(data.buffer, data.byteOffset, data.length);
}

/** Where each element is, in row-major order. */
function offsetsOf(shape, strides) {
  let offsets = Int32Array.of(0);
  shape.forEach((size, axis) => {
    const stride = strides[axis];
    const starts = offsets;
    offsets = new Int32Array(starts.length * size);
    for (let i = 0; i < offsets.length; ++i) offsets[i] = starts[Math.floor(i / size)] + (i % size) * stride;
  });
  return offsets;
}

function scatter({ dtype, shape, data }, strides) {
  const offsets = offsetsOf(shape, strides);
  const spread = new (arrayOf(dtype))(offsets.length === 0 ? 0 : offsets.at(-1) + 1);
  spread.fill(fillerOf(dtype));
  for (let i = 0; i < offsets.length; ++i) spread[offsets[i]] = data[i];
  return { dtype, shape, data: spread, strides };
}

function gather(tensor) {
  const elements = elementsOf(tensor);
  if (!tensor.strides) return elements;
  const offsets = offsetsOf(tensor.shape, tensor.strides);
  const packed = new elements.constructor(offsets.length);
  for (let i = 0; i < offsets.length; ++i) packed[i] = elements[offsets[i]];
  return packed;
}

/** Whether the call wrote between the elements of its output. */
function strayWrite({ dtype, shape, data, strides }) {
  if (!strides) return undefined;
  const gaps = data.slice();
  const filler = fillerOf(dtype);
  for (const offset of offsetsOf(shape, strides)) gaps[offset] = filler;
  return gaps.every((element) => element === filler) ? undefined : 'the call wrote between the elements of its output';
}
