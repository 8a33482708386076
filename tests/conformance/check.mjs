// Runs a case on an instance, with its tensors in every kind of place. Knows the operations, and
// nothing of files.
import { difference, gemmBound } from './compare.mjs';
import { arrayOf, valueOf } from './elements.mjs';
import { matmulBound } from './matmul.mjs';

/**
 * The operations of the package: their names there, the index of B among the inputs, the attribute
 * that transposes it, and the arguments of a call. `bound`: the error bound of the results, or
 * undefined if every bit counts. `shortForms`: inputs that may also be a number, with its type, or
 * an array without a shape. `contiguous`: inputs that have no strides. `pack`: packs B in another
 * way than most operations.
 */
const operations = {
  Gemm: {
    name: 'gemm',
    indexOfB: 1,
    trans: 'transB',
    argumentsOf([a, b, c], { beta, ...options }, opset) {
      // With an output, beta without C is refused. A node of a model states it all the same.
      const factor = (c || !options.out) && beta !== undefined && { beta };
      return [a, b, c, { ...options, ...factor, opset }];
    },
    bound: gemmBound,
    shortForms: () => [],
  },
  QGemm: {
    name: 'qgemm',
    indexOfB: 3,
    trans: 'transB',
    argumentsOf: (
      [a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint],
      options,
    ) => [{ a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint }, options],
    bound: () => undefined,
    shortForms: ([a, , , b]) => ({
      1: 'float32',
      2: a.dtype,
      4: 'float32',
      5: b.dtype,
      7: 'float32',
      8: a.dtype,
    }),
  },
  MatMul: {
    name: 'matmul',
    indexOfB: 1,
    trans: 'transposeB',
    argumentsOf: ([src, weights, bias], options) => [src, weights, bias, options],
    bound: matmulBound,
    shortForms: ([src, , bias]) => (bias?.data.length === 1 ? { 2: src.dtype } : {}),
  },
  MatMulInteger: {
    ...integerMatMul('matmulInteger', 1),
    argumentsOf: ([a, b, aZeroPoint, bZeroPoint], options) => [
      a,
      b,
      { ...options, aZeroPoint, bZeroPoint },
    ],
    shortForms: ([a, b]) => ({ 2: a.dtype, 3: b.dtype }),
  },
  QLinearMatMul: {
    ...integerMatMul('qlinearMatmul', 3),
    argumentsOf: ([a, aScale, aZeroPoint, b, bScale, bZeroPoint, yScale, yZeroPoint], options) => [
      { a, aScale, aZeroPoint, b, bScale, bZeroPoint, yScale, yZeroPoint },
      options,
    ],
    shortForms: ([a, aScale, , b]) => ({
      ...(aScale.dtype === 'float32' && { 1: 'float32', 4: 'float32', 6: 'float32' }),
      2: a.dtype,
      5: b.dtype,
      7: a.dtype,
    }),
  },
  DynamicQuantizeMatMul: {
    ...integerMatMul('dynamicQuantizeMatmul', 1),
    argumentsOf: ([a, b, bScale, bZeroPoint, bias], options) => [
      a,
      b,
      { ...options, bScale, bZeroPoint, bias },
    ],
    shortForms: ([, b]) => ({ 2: 'float32', 3: b.dtype }),
  },
  MatMulIntegerToFloat: {
    ...integerMatMul('matmulIntegerToFloat', 1),
    argumentsOf: ([a, b, aScale, bScale, aZeroPoint, bZeroPoint, bias], options) => [
      a,
      b,
      { ...options, aScale, bScale, aZeroPoint, bZeroPoint, bias },
    ],
    shortForms: ([a, b, aScale]) => ({
      ...(aScale?.dtype === 'float32' && { 2: 'float32', 3: 'float32' }),
      4: a.dtype,
      5: b.dtype,
    }),
  },
  MatMulNBits: {
    name: 'matmulNBits',
    indexOfB: 1,
    contiguous: [1, 2, 3, 4],
    pack: (wg, inputs, attrs) => wg.pack(nbitsOf(inputs, attrs), { op: 'matmulNBits' }),
    argumentsOf: (inputs, { out, ...attrs }) => [
      inputs[0],
      'serialize' in inputs[1] ? inputs[1] : nbitsOf(inputs, attrs),
      { out, bias: inputs[5], accuracyLevel: attrs.accuracy_level },
    ],
    // Without a tolerance the cases have whole numbers whose sums are exact. A sum may be -0.
    bound: ({ tolerance, outputs: [y] }) => toleranceOf(tolerance ?? {}, y),
    shortForms: () => ({}),
  },
};

/** Weights of MatMulNBits. */
function nbitsOf([, data, scales, zeroPoints, gIdx], { K: k, N: n, bits, block_size: blockSize }) {
  return { data, scales, zeroPoints, k, n, bits, blockSize, ...(gIdx && { gIdx }) };
}

/** The bound of each element of `y`. */
function toleranceOf({ abs = 0, rel = 0 }, { dtype, data, indices }) {
  const placeOf = (index) => indices?.indexOf(index) ?? index;
  return (index) => abs + rel * Math.abs(valueOf(dtype, data[placeOf(index)]));
}

/** What the integer products have in common. A tolerance is { abs, rel }. */
function integerMatMul(name, indexOfB) {
  const bound = ({ tolerance, outputs: [y] }) => tolerance && toleranceOf(tolerance, y);
  return { name, packedFor: 'qgemm', indexOfB, trans: 'transB', bound };
}

/** The bound of each element of a case's results; undefined if every bit counts. */
export const boundOf = (kase) => operations[kase.op].bound(kase);
/** The index of B among the inputs of an operation. */
export const indexOfB = (op) => operations[op].indexOfB;

/** Every case runs with B plain, and with B packed. */
export const forms = ['plain', 'packed'];

/**
 * Why B of a case cannot be packed, as a reason to count; undefined if it can. `check` verifies
 * that `pack` agrees.
 */
export function notPacked({ op, inputs }) {
  const { name, indexOfB } = operations[op];
  const rank = inputs[indexOfB].shape.length;
  return rank < 2 ? `pack refuses what ${name} takes as B: it has rank ${rank}` : undefined;
}

/** Why a case is left out, if the package lacks its operation; undefined if it has it. */
export const notSupported = ({ op }) =>
  op in operations ? undefined : `of ${op}, which the package does not have`;

/** The value in gaps, and in outputs before the call. */
const fillerOf = (dtype) => (dtype.endsWith('int64') ? 77n : 77);

/**
 * Each makes an operand from a tensor of a case. All except the first also make outputs.
 */
const places = {
  'new output': (_, tensor) => tensor,
  'short forms'(_, tensor, typeOfNumber) {
    const { dtype, shape, data } = tensor;
    if (typeOfNumber === undefined || shape.length > 1) return tensor;
    return data.length === 1 && dtype === typeOfNumber
      ? valueOf(dtype, data[0])
      : shape.length === 1
        ? data
        : tensor;
  },
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

/** The place of tensors with explicit strides. */
const allPlaces = { ...places, 'own strides': (_, tensor) => tensor };

/** An argument as callers write it. Cases have the names of the specifications. */
const nameInCalls = (argument) =>
  argument?.replace(/^(Y|dst)$/, 'out').replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/**
 * Returns what is wrong, as a sentence; undefined if nothing is. A case runs in all places, or in
 * the results of its `runs`. With B packed, the case that its `packedAs` makes runs instead. Then
 * the case that its `also` makes runs.
 *
 * @param form of B, one of `forms`; if B cannot be packed, pack must refuse it
 * @param onKernel is called once per case, with the name of the kernel that a call uses
 */
export function check(wg, kase, form, onKernel = () => undefined) {
  if (form === 'packed' && notPacked(kase)) return checkRefusalToPack(wg, kase);
  const as = (form === 'packed' && kase.packedAs?.()) || kase;
  const names = as.runs ?? Object.keys(places);
  for (const name of names) {
    const tellKernel = name === names[0] && as.expect !== 'reject' ? onKernel : undefined;
    const place = (tensor, type, isContiguous) =>
      allPlaces[isContiguous && /strides|column/.test(name) ? 'new output' : name](
        wg,
        tensor,
        type,
      );
    const wrong = checkIn(wg, as, form, place, name !== 'new output', tellKernel);
    if (wrong) return `${name}, B ${form}: ${wrong}`;
  }
  return kase.also && check(wg, kase.also(), form, onKernel);
}

function checkRefusalToPack(wg, { op, inputs, attrs }) {
  try {
    pack(wg, operations[op], inputs, attrs).dispose();
  } catch (error) {
    return error.argument === 'B' ? undefined : `expected pack to refuse B, found ${error}`;
  }
  return 'expected pack to refuse B, found packed weights';
}

const pack = (wg, { name, packedFor = name, indexOfB, trans, pack: own }, inputs, options) =>
  own?.(wg, inputs, options) ?? wg.pack(inputs[indexOfB], { op: packedFor, trans: options[trans] });

function checkIn(wg, kase, form, place, givesOut, onKernel) {
  const { op, opset, attrs, inputs, outputs, tolerance, expect } = kase;
  const operation = operations[op];
  const { name, indexOfB, trans, argumentsOf, bound, shortForms, contiguous = [] } = operation;
  const [wanted] = outputs;
  const typesOfNumbers = shortForms(inputs);
  const options = { ...attrs };
  const placed = [];
  let weights;
  try {
    for (const [i, tensor] of inputs.entries())
      placed.push(tensor && place(tensor, typesOfNumbers[i], contiguous.includes(i)));
    if ((givesOut || expect === 'reject') && wanted) options.out = place(outputFor(wanted));
    let y;
    try {
      const operands = [...placed];
      if (form === 'packed') {
        weights = operands[indexOfB] = pack(wg, operation, placed, options);
        delete options[trans];
      }
      const args = argumentsOf(operands, options, opset);
      onKernel?.(wg.explain(name, ...args).kernel);
      y = wg[name](...args);
    } catch (error) {
      // Only an error of the library that names the argument at fault is a refusal.
      const argument = nameInCalls(kase.argument);
      if (expect === 'reject' && error.argument && error.argument === (argument ?? error.argument))
        return undefined;
      const expected = expect === 'reject' ? `refusal of ${argument ?? 'an argument'}` : 'result';
      return `expected a ${expected}, found ${error}`;
    }
    if (expect === 'reject') return 'expected a refusal, found a result';
    if (options.out && y !== options.out) return 'what the call returns is not its output';
    if (`${y.dtype} [${y.shape}]` !== `${wanted.dtype} [${wanted.shape}]`) {
      return `expected ${wanted.dtype} [${wanted.shape}], found ${y.dtype} [${y.shape}]`;
    }
    return (
      difference(
        wanted,
        gather(y, wanted.indices),
        bound(kase),
        typeof tolerance === 'number' ? tolerance : 0,
      ) ?? (wanted.indices ? undefined : strayWrite(y))
    );
  } finally {
    for (const tensor of [...placed, weights, options.out]) tensor?.dispose?.();
  }
}

/** An empty tensor of the wanted type and shape. */
function outputFor({ dtype, shape, strides }) {
  const size = shape.reduce((product, size) => product * size, 1);
  const length =
    strides && size > 0
      ? shape.reduce((last, size, axis) => last + (size - 1) * strides[axis], 1)
      : size;
  const data = new (arrayOf(dtype))(length).fill(fillerOf(dtype));
  return strides ? { dtype, shape, strides, data } : { dtype, shape, data };
}

/** The elements as stored: elements of a Float16Array as bits. */
function elementsOf({ dtype, data }) {
  return new (arrayOf(dtype))(data.buffer, data.byteOffset, data.length);
}

/** The offset of each element, in row-major order. */
function offsetsOf(shape, strides) {
  let offsets = Int32Array.of(0);
  shape.forEach((size, axis) => {
    const stride = strides[axis];
    const starts = offsets;
    offsets = new Int32Array(starts.length * size);
    let next = 0;
    for (const start of starts) for (let i = 0; i < size; ++i) offsets[next++] = start + i * stride;
  });
  return offsets;
}

const words = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array };

/**
 * Elements as integers of their size. Engines run a loop over these four array classes much faster
 * than one over ten.
 */
const wordsOf = ({ buffer, byteOffset, length, BYTES_PER_ELEMENT: bytes }) =>
  new words[bytes](buffer, byteOffset, length);

function scatter({ dtype, shape, data }, strides) {
  const offsets = offsetsOf(shape, strides);
  const spread = new (arrayOf(dtype))(offsets.length === 0 ? 0 : offsets.at(-1) + 1);
  spread.fill(fillerOf(dtype));
  const [from, to] = [wordsOf(data), wordsOf(spread)];
  for (let i = 0; i < offsets.length; ++i) to[offsets[i]] = from[i];
  return { dtype, shape, data: spread, strides };
}

/** All elements in row-major order, or only those at `indices` in that order. */
function gather(tensor, indices) {
  const elements = elementsOf(tensor);
  if (!tensor.strides && !indices) return elements;
  const offsets = indices
    ? indices.map((index) => offsetOf(tensor, index))
    : offsetsOf(tensor.shape, tensor.strides);
  const packed = new elements.constructor(offsets.length);
  for (let i = 0; i < offsets.length; ++i) packed[i] = elements[offsets[i]];
  return packed;
}

/** The offset of element number `index` in row-major order. */
function offsetOf({ shape, strides }, index) {
  if (!strides) return index;
  let offset = 0;
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    offset += (index % shape[axis]) * strides[axis];
    index = Math.floor(index / shape[axis]);
  }
  return offset;
}

/** Whether the call wrote between the elements of its output. */
function strayWrite({ dtype, shape, data, strides }) {
  if (!strides) return undefined;
  const gaps = data.slice();
  const filler = fillerOf(dtype);
  for (const offset of offsetsOf(shape, strides)) gaps[offset] = filler;
  return gaps.every((element) => element === filler)
    ? undefined
    : 'the call wrote between the elements of its output';
}
