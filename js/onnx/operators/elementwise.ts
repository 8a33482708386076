/** Operators that compute each element of the result from one element of each input. */
import { classOf } from '../../base/arrays.js';
import { DTypeError, ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import { typeOf } from '../read/tensors.js';
import type { Make, OnnxDType, Value } from '../read/value.js';
import {
  broadcast,
  type Compute,
  computed,
  define,
  inWords,
  isBig,
  type Numbers,
  refuse,
  type StepForm,
  stridesIn,
  walk,
  widened,
  wordsOf,
} from './define.js';
import { erf, exactErf, exp, tanh } from './functions.js';
import { type Attributes, invalid, unsupported } from './operator.js';
import { isRecording, record } from './record.js';
import { inArray, sizeOf } from './storage.js';

// The loops are written out, since engines compile them well only if they call nothing unknown.
// float64 is rare: it may slow them down, but elements that are bigints must not get into them.

type Words = Int32Array;
const isFloat64 = (y: Numbers) => classOf(y) === 'Float64Array';

function map(y: Numbers, x: Numbers, f: (x: number) => number): void {
  for (let i = 0; i < y.length; ++i) y[i] = f(x[i] as number);
}

function unary(
  names: string,
  loop: (attributes: Attributes) => (y: Numbers, x: Numbers) => void,
  formOf: (attributes: Attributes) => StepForm = () => ({ name: names.split('@')[0] as string }),
): void {
  define(names, 'X:float', (attributes) => {
    const body = loop(attributes);
    const form = formOf(attributes);
    return ([x], make) =>
      computed(make, (x as Value).dtype, (x as Value).shape, [x as Value], body, form);
  });
}

function exactGelu(y: Numbers, x: Numbers): void {
  if (isFloat64(y)) return map(y, x, (v) => 0.5 * v * (1 + exactErf(v * Math.SQRT1_2)));
  for (let i = 0; i < y.length; ++i) {
    const v = x[i] as number;
    y[i] = 0.5 * v * (1 + erf(v * Math.SQRT1_2));
  }
}

function fastGelu(y: Numbers, x: Numbers): void {
  const factor = -2 * Math.sqrt(2 / Math.PI);
  for (let i = 0; i < y.length; ++i) {
    const v = x[i] as number;
    y[i] = v / (1 + exp(factor * (v + 0.044715 * v * v * v))); // (1 + tanh(u)) / 2, as one quotient
  }
}

/** As in the calls of products, -0 stays -0 if the bounds admit 0. */
function clip(y: Numbers, x: Numbers, least: number, most: number): void {
  const keepsZero = least <= 0 && most >= 0;
  for (let i = 0; i < y.length; ++i) {
    const v = x[i] as number;
    // Few elements are 0, so processors predict this branch.
    y[i] = v === 0 && keepsZero ? v : Math.min(Math.max(v, least), most);
  }
}

/** The bits of -Infinity, per type. For a type of 16 bits, they are the upper half of a word. */
const infinities: Record<string, number> = {
  float32: 0xff800000,
  bfloat16: 0xff800000,
  float16: 0xfc000000,
};

/** Clips to 0 by the bits, since processors cannot predict signs. NaN stays NaN. */
function relu(y: Words, x: Words, infinity: number): void {
  const shift = 32 - 8 * y.BYTES_PER_ELEMENT;
  for (let i = 0; i < y.length; ++i) {
    const v = x[i] as number;
    const w = v << shift;
    y[i] = w >>> 0 > infinity ? v : v & ~((w - 1) >> 31);
  }
}

/** `clip` for bigints. */
function clipBig(y: Numbers, x: Numbers, least: number, most: number): void {
  map(y, x, (v) => {
    const w = v < least ? least : v;
    return w > most ? most : w;
  });
}

/** Whether float64 has a bound, which may be a bigint. */
const isExactBound = (bound: number | bigint): boolean =>
  typeof bound === 'number' || Number.isSafeInteger(Number(bound));

function clipped(
  x: Value,
  make: Make,
  least: number,
  most: number,
  form: StepForm | undefined = isExactBound(least) && isExactBound(most)
    ? { name: 'Clip', attributes: [Number(least), Number(most)] }
    : undefined,
): Value {
  const loop = isBig(x.dtype) ? clipBig : clip;
  return computed(make, x.dtype, x.shape, [x], (y, x) => loop(y, x, least, most), form);
}

/** Computes a run of `length` elements. The steps from one to the next are `s` and `t`. */
type Loop = (
  y: Numbers,
  at: number,
  length: number,
  a: Numbers,
  p: number,
  s: number,
  b: Numbers,
  q: number,
  t: number,
) => void;

/** Calls a loop for two inputs that are broadcast. */
function binary([a, b]: readonly Value[], make: Make, loop: Loop, name?: string): Value {
  const shape = broadcast((a as Value).shape, (b as Value).shape);
  const strides = [
    contiguousStrides(shape),
    stridesIn(shape, (a as Value).shape),
    stridesIn(shape, (b as Value).shape),
  ];
  const inputs = [a as Value, b as Value];
  const [own, ...others] = strides as [number[], number[], number[]];
  const form = name === undefined ? undefined : { name, dims: shape, strides: [...others, own] };
  return computed(
    make,
    (a as Value).dtype,
    shape,
    inputs,
    (y, a, b) =>
      walk(shape, strides, (length, [at, p, q], [, s, t]) =>
        loop(y, at as number, length, a, p as number, s as number, b, q as number, t as number),
      ),
    form,
  );
}

/** A loop that calls a function, which may take and return bigints. */
function calling(f: (a: number, b: number) => number): Loop {
  return (y, at, length, a, p, s, b, q, t) => {
    for (const end = at + length; at < end; ++at, p += s, q += t)
      y[at] = f(a[p] as number, b[q] as number);
  };
}

/** @param f computes integers. The array that takes them truncates and wraps */
function arithmetic(name: string, loop: Loop, f: (a: number, b: number) => number): Compute {
  const slow = calling(f);
  const compute: Compute = (inputs, make) =>
    binary(inputs, make, inputs[0]?.dtype.includes('float') ? loop : slow, name);
  define(`${name}@7`, 'A:number B:same', () => compute);
  return compute;
}

/** As in IEEE 754: 1 for 1 to any power, and for -1 to an infinite one. */
const power = calling((a, b) =>
  a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : Math.pow(a, b),
);
function square(y: Numbers, x: Numbers): void {
  for (let i = 0; i < y.length; ++i) y[i] = (x[i] as number) * (x[i] as number);
}
const product = (a: number, b: number) => (typeof a === 'number' ? Math.imul(a, b) : a * b);

function cast(x: Value, make: Make, to: OnnxDType): Value {
  const { dtype, shape } = x;
  if (dtype === to) return x;
  const isFloat = (type: string) => type.includes('float');
  const toBig = isBig(to);
  const form = { name: to === 'bool' ? 'CastToBool' : 'Cast' };
  const convert = (y: Numbers, x: Numbers) => {
    if (to === 'bool')
      map(y, x, (v) => (v == 0 ? 0 : 1)); // also of bigints
    else if (toBig === isBig(dtype) && (isFloat(to) || !isFloat(dtype))) y.set(x);
    else if (isBig(dtype))
      map(y, x, (v) => Number(isFloat(to) ? v : BigInt.asIntN(32, v as never)));
    else if (!isFloat(dtype)) map(y, x, BigInt as never);
    else {
      // ONNX does not define what numbers out of range become: they saturate.
      const isSigned = to.startsWith('i') ? 1 : 0;
      const limit = 2 ** (8 * y.BYTES_PER_ELEMENT - isSigned);
      const whole = (toBig ? BigInt : Number) as (v: number) => number;
      const most = (toBig ? BigInt(limit) - 1n : limit - 1) as number;
      map(y, x, (v) =>
        v >= limit ? most : whole(Math.trunc(Math.max(v || 0, -limit * isSigned))),
      );
    }
  };
  return computed(make, to, shape, [x], convert, form);
}

type Four = [number, number, number, number];

/** A run of Where, in words. */
function select(
  y: Words,
  flags: Words,
  x: Words,
  z: Words,
  length: number,
  [at, r, p, q]: Four,
  [, u, s, t]: Four,
): void {
  for (const end = at + length; at < end; ++at, r += u, p += s, q += t)
    y[at] = (flags[r] ? x[p] : z[q]) as number;
}

/** @internal Adds the operators of this file to the table. */
export function addElementwise(): void {
  unary(
    'LeakyRelu',
    (attributes) => {
      const alpha = attributes.float('alpha', Math.fround(0.01));
      return (y, x) => {
        for (let i = 0; i < y.length; ++i) {
          const v = x[i] as number;
          y[i] = v < 0 ? alpha * v : v;
        }
      };
    },
    (attributes) => ({
      name: 'LeakyRelu',
      attributes: [attributes.float('alpha', Math.fround(0.01))],
    }),
  );
  unary('Sigmoid', () => (y, x) => {
    for (let i = 0; i < y.length; ++i) y[i] = 1 / (1 + exp(-(x[i] as number)));
  });
  unary('Tanh', () => (y, x) => {
    for (let i = 0; i < y.length; ++i) y[i] = tanh(x[i] as number);
  });
  unary('Sqrt', () => (y, x) => {
    for (let i = 0; i < y.length; ++i) y[i] = Math.sqrt(x[i] as number);
  });
  unary('Erf@9', () => (y, x) => {
    if (isFloat64(y)) return map(y, x, exactErf);
    for (let i = 0; i < y.length; ++i) y[i] = erf(x[i] as number);
  });

  unary(
    'Gelu@20',
    (attributes) => {
      const approximate = attributes.string('approximate', 'none');
      if (!['none', 'tanh'].includes(approximate))
        throw invalid(attributes.node, 'has an unknown approximate; it must be none or tanh');
      return approximate === 'none' ? exactGelu : fastGelu;
    },
    (attributes) => ({
      name: attributes.string('approximate', 'none') === 'none' ? 'Gelu' : 'FastGelu',
    }),
  );
  unary(
    'com.microsoft.Gelu',
    () => exactGelu,
    () => ({ name: 'Gelu' }),
  );
  define('com.microsoft.FastGelu', 'X:float bias:same?', () => ([x, bias], make) => {
    const make0 = isRecording() ? make : inArray;
    const sum = bias ? (add([x as Value, bias], make0) as Value) : (x as Value);
    return computed(make, sum.dtype, sum.shape, [sum], fastGelu, { name: 'FastGelu' });
  });

  define('Relu', 'X:number', () => ([x], make) => {
    const { dtype, shape } = x as Value;
    const infinity = infinities[dtype];
    if (infinity === undefined)
      return clipped(x as Value, make, (isBig(dtype) ? 0n : 0) as number, Infinity, {
        name: 'Relu',
      });
    const y = make(dtype, shape, [x as Value]);
    const tensors = [x as Value, y].map((value) => ({ value, strides: [1] }));
    if (record('Relu', [sizeOf(shape)], tensors)) return y;
    relu(wordsOf(y.data)[0], wordsOf((x as Value).data)[0], infinity);
    return y;
  });
  define('Clip', 'input:number min:same?@11 max:same?@11', (attributes, opset) => {
    const isOld = opset < 11;
    const fixed = isOld
      ? [attributes.float('min', -Infinity), attributes.float('max', Infinity)]
      : [-Infinity, Infinity];
    return ([x, ...bounds], make) => {
      const { dtype } = x as Value;
      if (isOld && !dtype.includes('float'))
        refuse(DTypeError, 'input', `has dtype ${dtype}`, 'floating point');
      const [least, most] = fixed.map((absent, i) => {
        const bound = bounds[i];
        if (!bound) return absent;
        const { length, 0: value } = widened(bound);
        if (length === 1) return value === value ? value : absent; // NaN is not a bound
        return refuse(ShapeError, i ? 'max' : 'min', `has ${length} elements`, 'a scalar');
      });
      return clipped(x as Value, make, least as number, most as number);
    };
  });

  const add = arithmetic(
    'Add',
    (y, at, length, a, p, s, b, q, t) => {
      for (const end = at + length; at < end; ++at, p += s, q += t)
        y[at] = (a[p] as number) + (b[q] as number);
    },
    (a, b) => a + b,
  );
  arithmetic(
    'Sub',
    (y, at, length, a, p, s, b, q, t) => {
      for (const end = at + length; at < end; ++at, p += s, q += t)
        y[at] = (a[p] as number) - (b[q] as number);
    },
    (a, b) => a - b,
  );
  arithmetic(
    'Mul',
    (y, at, length, a, p, s, b, q, t) => {
      for (const end = at + length; at < end; ++at, p += s, q += t)
        y[at] = (a[p] as number) * (b[q] as number);
    },
    product,
  );
  arithmetic(
    'Div',
    (y, at, length, a, p, s, b, q, t) => {
      for (const end = at + length; at < end; ++at, p += s, q += t)
        y[at] = (a[p] as number) / (b[q] as number);
    },
    (a, b) => (b ? a / b : b), // ONNX does not define division by 0: it is 0 here
  );

  // As in ONNX Runtime, integers to the power of one 2 or 3 wrap, and others are float64.
  define('Pow@7', 'X:number Y:number', () => (inputs, make) => {
    const [x, exponent] = inputs as [Value, Value];
    const { length, 0: first } = widened(exponent);
    const only = length === 1 ? Number(first) : NaN;
    const isFloat = x.dtype.includes('float');
    if (only === 2 || (only === 3 && !isFloat)) {
      const shape = broadcast(x.shape, exponent.shape);
      const power = (v: number) => product(only === 2 ? v : product(v, v), v);
      const loop = isFloat ? square : (y: Numbers, x: Numbers) => map(y, x, power);
      return computed(make, x.dtype, shape, [x], loop, { name: only === 2 ? 'Square' : 'Cube' });
    }
    const [base, to] = inputs.map((value) =>
      value.dtype.includes('float') ? value : cast(value, inArray, 'float64'),
    ) as [Value, Value];
    return isFloat
      ? binary([base, to], make, power)
      : cast(binary([base, to], inArray, power), make, x.dtype);
  });

  define('Cast', 'input:any', (attributes, _, node) => {
    attributes.ignore('saturate@19', 'round_mode@24'); // of types that wgemm has not
    const number = attributes.int('to');
    const type = typeOf(number);
    if (type.length === 1)
      throw unsupported(node, `casts to ${number}, the type ${type[0]}, which wgemm does not have`);
    return ([x], make) => cast(x as Value, make, type[0]);
  });

  define('Where@9', 'condition:bool X:any Y:same', () => (inputs, make) => {
    const shape = broadcast(...inputs.map(({ shape }) => shape));
    const result = make((inputs[1] as Value).dtype, shape);
    const tensors = [
      ...inputs.map((value) => ({ value, strides: stridesIn(shape, value.shape) })),
      { value: result, strides: contiguousStrides(shape) },
    ];
    if (record('Where', shape, tensors)) return result;
    const [y, count] = wordsOf(result.data);
    const [flags, x, z] = inputs.map(({ data }) => wordsOf(data)[0]) as [Words, Words, Words];
    walk(
      [...shape, count],
      [
        inWords(contiguousStrides(shape), count),
        ...inputs.map((input, i) => {
          const strides = stridesIn(shape, input.shape);
          return i ? inWords(strides, count) : [...strides, 0];
        }),
      ],
      (length, at, steps) => select(y, flags, x, z, length, at as Four, steps as Four),
    );
    return result;
  });
}
