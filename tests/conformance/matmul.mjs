// oneDNN Graph MatMul for comparison: its definition in plain loops, and its cases, most of which
// are only shapes. Knows nothing of files.
import { arrayOf, elementOf, valueOf } from './elements.mjs';

const sizeOf = (shape) => shape.reduce((product, size) => product * size, 1);

const stridesOf = ({ shape, strides }) =>
  strides ?? shape.map((_, axis) => sizeOf(shape.slice(axis + 1)));

/** The length of a tensor's array. */
const extentOf = ({ shape, strides }) =>
  !strides || sizeOf(shape) === 0
    ? sizeOf(shape)
    : shape.reduce((last, size, axis) => last + (size - 1) * strides[axis], 1);

/**
 * The axes of src or weights: the axes of the batch, then the one that remains in dst and the one
 * that is summed over.
 */
function axesOf(tensor, transposed, isSrc) {
  const axes = tensor.shape.map((size, axis) => ({ size, stride: stridesOf(tensor)[axis] }));
  const [row, column] =
    axes.length === 1
      ? [undefined, axes[0]]
      : transposed
        ? axes.slice(-2).reverse()
        : axes.slice(-2);
  const batch = axes.slice(0, -2);
  if (isSrc || axes.length === 1) return { batch, own: row, sum: column };
  return { batch, own: column, sum: row };
}

/** The shape of dst, and the operands of each of its elements. */
function arrange([src, weights, bias], { transposeA, transposeB }) {
  const a = axesOf(src, transposeA, true);
  const b = axesOf(weights, transposeB, false);
  const axes = [];
  for (let back = Math.max(a.batch.length, b.batch.length); back > 0; --back) {
    const [ofA, ofB] = [a.batch.at(-back), b.batch.at(-back)];
    const size = ofA && ofA.size !== 1 ? ofA.size : (ofB?.size ?? 1);
    axes.push({
      size,
      a: ofA && ofA.size !== 1 ? ofA.stride : 0,
      b: ofB && ofB.size !== 1 ? ofB.stride : 0,
    });
  }
  if (a.own) axes.push({ size: a.own.size, a: a.own.stride, b: 0 });
  if (b.own) axes.push({ size: b.own.size, a: 0, b: b.own.stride });
  bias?.shape.forEach((size, axis) => {
    axes.at(axis - bias.shape.length).c = size === 1 ? 0 : stridesOf(bias)[axis];
  });
  axes.reverse();

  /** Offsets of the first factors and of the bias of the dst element `index`. */
  const locate = (index) => {
    const at = { a: 0, b: 0, c: 0 };
    for (const { size, a, b, c = 0 } of axes) {
      const step = index % size;
      index = (index - step) / size;
      at.a += step * a;
      at.b += step * b;
      at.c += step * c;
    }
    return at;
  };
  return {
    shape: axes.map(({ size }) => size).reverse(),
    k: a.sum.size,
    stepA: a.sum.stride,
    stepB: b.sum.stride,
    locate,
  };
}

/** 16 bits -> the number that they mean. */
const numbers = Object.fromEntries(
  ['float16', 'bfloat16'].map((dtype) => [
    dtype,
    Float32Array.from({ length: 65536 }, (_, element) => valueOf(dtype, element)),
  ]),
);

/**
 * For some elements of dst: the sums of products plus bias, or the sums of their magnitudes. In
 * float64, which is exact for small whole numbers.
 */
function sums([src, weights, bias], attrs, indices, sizes = false) {
  const { k, stepA, stepB, locate } = arrange([src, weights, bias], attrs);
  const [dataA, dataB] = [src.data, weights.data];
  const table = numbers[src.dtype];
  const value = (element) => Number(table ? table[element] : element);
  return Float64Array.from(indices, (index) => {
    const { a, b, c } = locate(index);
    const first = bias ? value(bias.data[c]) : 0;
    let sum = sizes ? Math.abs(first) : first;
    for (let p = 0; p < k; ++p) {
      const [x, y] = [value(dataA[a + p * stepA]), value(dataB[b + p * stepB])];
      sum += sizes ? Math.abs(x * y) : x * y;
    }
    return sum;
  });
}

/** The bound of each element of a result, with eps of the type that is computed in. */
export function matmulBound({ attrs, inputs, outputs: [y], exact }) {
  if (exact) return undefined;
  const { k } = arrange(inputs, attrs);
  const eps = y.dtype === 'float64' ? 2 ** -53 : 2 ** -24;
  return (index) => (k + 8) * eps * sums(inputs, attrs, [index], true)[0];
}

/** Mulberry32: whole numbers below 2^32, the same in every run. */
function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let bits = Math.imul(seed ^ (seed >>> 15), seed | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return (bits ^ (bits >>> 14)) >>> 0;
  };
}

/**
 * Type -> the longest array of whole numbers that was needed: a random sequence, repeated. Tensors
 * are sections of it.
 */
const wholes = {};
const period = 65521; // a prime, so that no axis repeats with it

/**
 * Elements from -4 to 4 except 0, so that sums are exact and none is -0. Read only.
 */
function wholeNumbers(dtype, length, random) {
  const least = length + period;
  if (!(wholes[dtype]?.length >= least)) {
    const values = [-4, -3, -2, -1, 1, 2, 3, 4].map((value) => elementOf(dtype, value));
    const data = new (arrayOf(dtype))(least);
    for (let i = 0; i < period; ++i) data[i] = values[random() >>> 29];
    for (let i = period; i < least; i += period) data.copyWithin(i, 0, Math.min(period, least - i));
    wholes[dtype] = data;
  }
  const start = random() % period;
  return wholes[dtype].subarray(start, start + length);
}

const dtypes = { f32: 'float32', f16: 'float16', bf16: 'bfloat16' };

/**
 * The most multiplications that the check of a case does: of larger cases, only some elements are
 * checked.
 */
const mostChecked = 2e5;

/**
 * From the first number of multiplications on, a case runs with fewer copies. From the second on,
 * it runs once, and is cut if it has strides.
 */
const [large, huge] = [1e7, 1e9];

/** The cases of oneDNN, which has no opsets. */
export function* onednnCases(cases) {
  let seed = 0;
  for (const kase of cases) {
    const random = randomFrom(++seed);
    yield kase.expect === 'invalid_shape' ? refusal(kase, random) : product(kase, random);
  }
}

function refusal(kase, random) {
  // If the operands fit each other, the declared shape of dst is the wrong argument.
  const fits = kase.reason !== undefined;
  const outputs = fits ? [{ dtype: dtypes[kase.dtype], shape: kase.declared_dst }] : [];
  return {
    ...called(kase),
    attrs: {},
    inputs: inputsOf(kase, random),
    outputs,
    expect: 'reject',
    argument: fits ? 'dst' : 'weights',
  };
}

function product(kase, random) {
  const { dst_shape: dstShape, non_contiguous: strides, values } = kase;
  const whole = computed(kase, random);
  const { products } = whole;
  const [{ dtype, shape, data }] = whole.outputs;
  if (`${shape}` !== `${dstShape}`)
    throw new Error(`${whole.name}: dst has shape [${dstShape}], and by the definition [${shape}]`);
  if (values && `${data}` !== `${values.dst.map((value) => elementOf(dtype, value))}`) {
    throw new Error(`${whole.name}: dst is ${values.dst}, and by the definition ${data}`);
  }
  if (products >= huge) whole.runs = ['new output'];
  else if (products >= large) whole.runs = ['new output', 'heap'];
  // A huge case has fewer batches if it runs packed or through its strides. Made once for all runs.
  const cut = ([first, ...rest]) => [
    products >= huge && rest.length > 1 ? Math.min(first, 2) : first,
    ...rest,
  ];
  const shapes = { src_shape: cut(kase.src_shape), weights_shape: cut(kase.weights_shape) };
  const smaller = (strides, place) => {
    let made;
    return () => (made ??= { ...computed({ ...kase, ...shapes }, random, strides), runs: [place] });
  };
  if (products >= huge) whole.packedAs = smaller(undefined, 'new output');
  return strides ? { ...whole, also: smaller(strides, 'own strides') } : whole;
}

const called = ({ origin, dtype, src_shape: src, weights_shape: weights }) => ({
  name: `${origin.test}, [${src}] x [${weights}]`,
  op: 'MatMul',
  opset: 'oneDNN',
  type: dtypes[dtype],
});

/** The strides of a case; undefined for 'any'. */
const given = (strides) => (strides && strides[0] >= 0 ? strides : undefined);

function inputsOf(kase, random, strides) {
  const dtype = dtypes[kase.dtype];
  return ['src', 'weights', 'bias'].map((name) => {
    const shape = kase[`${name}_shape`];
    if (shape === null) return null;
    const tensor = { dtype, shape, strides: given(strides?.[name]) };
    const values = kase.values?.[name];
    if (values)
      return { ...tensor, data: arrayOf(dtype).from(values, (value) => elementOf(dtype, value)) };
    return { ...tensor, data: wholeNumbers(dtype, extentOf(tensor), random) };
  });
}

/** A case with its expected result, all of it or some elements. */
function computed(kase, random, strides) {
  const { transpose_a: transposeA, transpose_b: transposeB, dst_dtype: dstType } = kase;
  const inputs = inputsOf(kase, random, strides);
  const attrs = { transposeA, transposeB, ...(dstType && { outType: dtypes[dstType] }) };
  const { shape, k } = arrange(inputs, attrs);
  const size = sizeOf(shape);
  const most = Math.floor(mostChecked / Math.max(k, 1));
  const all = size <= most;
  const indices = Array.from({ length: all ? size : most }, (_, i) => (all ? i : random() % size));
  if (!all) indices.push(0, size - 1);
  const dtype = attrs.outType ?? inputs[0].dtype;
  const data = arrayOf(dtype).from(sums(inputs, attrs, indices), (sum) => elementOf(dtype, sum));
  const output = {
    dtype,
    shape,
    strides: given(strides?.dst),
    data,
    indices: all ? undefined : indices,
  };
  return { ...called(kase), attrs, inputs, outputs: [output], exact: true, products: size * k };
}
