/** The arguments of layers, as they are read from the caller's objects. */
import { ArgumentError, describe, DTypeError, ShapeError } from '../base/errors.js';
import { isReadable, unpolluted } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type { DType } from '../base/tensor.js';
import {
  type Operand,
  operandOf,
  packedWeights,
  type Reader,
  readTensor,
} from '../call/operand.js';
import { readActivation, readFlag } from '../call/options.js';
import { readAxis, readEach } from '../convert/quantize-arguments.js';
import { type Axis, limits, positive } from '../convert/quantize-numbers.js';
import type { PackedWeights } from '../instance/heap.js';

/**
 * @internal The numbers that describe a layer, without its weights and vectors. Serialized layers
 * begin with them.
 */
export type Form = readonly [
  k: number,
  n: number,
  bias: 0 | 1,
  isInt8: 0 | 1,
  /** Whether a zero point of the weights is not 0. */
  zeros: 0 | 1,
  min: number,
  max: number,
  /** An index into `quantizedTypes`. */
  typeOfX: 0 | 1,
  /** 0: each call computes the scale and the zero point of x. */
  scaleOfX: number,
  zeroOfX: number,
  typeOfY: 0 | 1,
  /** 0: the result is float32. */
  scaleOfY: number,
  zeroOfY: number,
];

/** @internal */
export const quantizedTypes = ['uint8', 'int8'] as const;
type QuantizedType = (typeof quantizedTypes)[number];

/** @internal The arguments of `createLinear`. */
export interface LinearArguments {
  readonly form: Form;
  /** The attributes of `pack`. */
  readonly attributes: Float64Array;
  /** Weights, bias, scales and zero points. */
  readonly operands: readonly (Operand | null)[];
}

const op = 'createLinear';
const optionNames = ['weights', 'trans', 'bias', 'as', 'activation', 'input', 'output'];

/** The types that weights can be packed as, by their own type. The first is the default. */
const kinds: Partial<Record<DType, readonly string[]>> = {
  float32: ['float32', 'float16', 'bfloat16', 'int8'],
  float16: ['float16'],
  bfloat16: ['bfloat16'],
  int8: ['int8'],
  uint8: ['int8'],
};

/** @internal Reads the options of `createLinear`, and checks everything that needs no core. */
export function readLinear(reader: Reader, options: unknown): LinearArguments {
  const { dtypes } = reader;
  reader.checkAlive(op);
  if (!isReadable(options)) throw refused('options', describe(options), 'an object with weights');
  const besides = reader.callOptions && ['signal'];
  const { weights, trans, bias, as, activation, input, output } = readOptions(
    op,
    options,
    optionNames,
    'options',
    besides,
  );
  const operand = readTensor(reader, op, 'weights', weights);
  if (operand.dtype === packedWeights) {
    const { format } = operand.source as unknown as PackedWeights;
    if (format) throw refused('weights', `packed as ${format}`, 'a tensor; call matmulNBits');
    throw refused('weights', 'packed already', 'the tensor that was passed to pack()');
  }
  const { shape } = operand;
  const type = dtypes[operand.dtype] as DType;
  const kind = readKind(as, type);
  const transposes = readFlag(op, 'trans', trans, 0);
  if (shape.length !== 2)
    throw wrongShape('weights', shape, ` of rank ${shape.length}; it must have rank 2`);
  const k = shape[transposes] as number;
  const n = shape[1 - transposes] as number;

  const addend = readBias(reader, bias, n);
  const bounds = new Float64Array(2);
  readActivation(op, activation, bounds, 0);
  const [min, max] = bounds as unknown as [number, number];
  if (!(min <= max))
    throw refused('activation', `[${min}, ${max}]`, '[min, max] with min at most max');

  const isInt8 = kind === 'int8';
  const ofXAndY = readQuantizations(input, output, isInt8);
  const [scales, zeros] =
    type === 'int8' || type === 'uint8'
      ? readParameter(weights as object, type, [...shape], { index: 1 - transposes, size: n })
      : [];
  const vector = (name: string, data: Float32Array | Uint8Array | Int8Array, dtype: DType) =>
    operandOf(name, dtypes.indexOf(dtype), [n], data);
  return {
    form: [k, n, addend ? 1 : 0, isInt8 ? 1 : 0, zeros ? 1 : 0, min, max, ...ofXAndY],
    attributes: Float64Array.of(
      isInt8 ? 1 : 0,
      transposes,
      isInt8 ? -1 : dtypes.indexOf(kind as DType),
    ),
    operands: [
      operand,
      addend,
      scales ? vector('scale', scales, 'float32') : null,
      zeros ? vector('zeroPoint', zeros, type) : null,
    ],
  };
}

/** The type that weights are packed as. */
function readKind(as: unknown, type: DType): unknown {
  const allowed = kinds[type];
  if (!allowed) {
    const rule = 'it must be float32, float16 or bfloat16, or what quantize() returned';
    throw new DTypeError(op, 'weights', `${op}: weights has type ${type}; ${rule}`);
  }
  const kind = as === undefined ? (allowed[0] as string) : as;
  if (allowed.includes(kind as string)) return kind;
  const found = `as is ${describe(as)} and weights has type ${type}`;
  throw new DTypeError(op, 'as', `${op}: ${found}; it must be ${allowed.join(' or ')}`);
}

function readBias(reader: Reader, bias: unknown, n: number): Operand | null {
  if (bias === undefined || bias === null) return null;
  const addend = readTensor(reader, op, 'bias', bias);
  const found = reader.dtypes[addend.dtype];
  if (found !== 'float32')
    throw new DTypeError(op, 'bias', `${op}: bias has type ${found}; it must be float32`);
  const [first, second] = addend.shape;
  if (addend.shape.length === 2 ? first !== 1 || second !== n : addend.shape.join() !== `${n}`)
    throw wrongShape('bias', addend.shape, `; it must have N elements, of shape [${n}]`);
  return addend;
}

function refused(name: string, found: string, allowed: string): ArgumentError {
  return new ArgumentError(op, name, `${op}: ${name} is ${found}; it must be ${allowed}`);
}

function wrongShape(name: string, shape: readonly number[], rule: string): ShapeError {
  return new ShapeError(op, name, `${op}: ${name} has shape [${shape.join(', ')}]${rule}`);
}

/**
 * Reads scales and zero points of weights that are quantized, one per column. There are no zero
 * points if all are 0.
 */
function readParameter(weights: object, dtype: QuantizedType, shape: number[], columns: Axis) {
  const { scale, zeroPoint = 0, axis: along } = unpolluted(weights, ['scale', 'zeroPoint', 'axis']);
  const axis = readAxis(op, along, 'weights', shape);
  if (axis && axis.index !== columns?.index) {
    const rule = `quantized along axis ${columns?.index}, with one scale per column, or as a whole`;
    throw refused('weights', `quantized along axis ${axis.index}`, rule);
  }
  const { least, most } = limits(dtype, false);
  const scales = readEach(op, 'weights.scale', scale, 'float32', columns, ...positive);
  const zeros = readEach(op, 'weights.zeroPoint', zeroPoint, dtype, columns, least, most);
  return [scales, zeros.some((zero: number) => zero !== 0) ? zeros : null] as const;
}

/** @internal Reads `input` and `output`. */
export function readQuantizations(input: unknown, output: unknown, isInt8: boolean) {
  const x = readQuantization('input', input, isInt8);
  const y = readQuantization('output', output, isInt8);
  if (y[1] !== 0 && x[1] === 0)
    throw new ArgumentError(
      op,
      'output',
      `${op}: output needs an input; give both, input alone, or neither`,
    );
  return [...x, ...y] as const;
}

/** Reads `input` or `output`: a type, a scale and a zero point. */
function readQuantization(
  name: string,
  value: unknown,
  isInt8: boolean,
): [type: 0 | 1, scale: number, zero: number] {
  if (value === undefined || value === null) return [0, 0, 0];
  if (!isInt8)
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is for int8 layers; leave it out, or set as to 'int8'`,
    );
  if (!isReadable(value)) throw refused(name, describe(value), '{ scale, zeroPoint, dtype }');
  // It may have more properties, if it is a tensor that quantize() returned.
  const {
    scale,
    zeroPoint = 0,
    dtype = 'uint8',
  } = unpolluted(value, ['scale', 'zeroPoint', 'dtype']);
  const type = quantizedTypes.indexOf(dtype as QuantizedType);
  if (type < 0) {
    const found = `${name}.dtype is ${describe(dtype)}`;
    throw new DTypeError(op, name, `${op}: ${found}; it must be 'uint8' or 'int8'`);
  }
  for (const [key, number] of Object.entries({ scale, zeroPoint }))
    if (typeof number !== 'number') throw refused(`${name}.${key}`, describe(number), 'one number');
  const { least, most } = limits(dtype as QuantizedType, false);
  return [
    type as 0 | 1,
    readEach(op, `${name}.scale`, scale, 'float32', null, ...positive)[0] as number,
    readEach(op, `${name}.zeroPoint`, zeroPoint, 'int32', null, least, most)[0] as number,
  ];
}

/**
 * @internal Throws unless x and `out` may have these types and shapes. `typeOfOut`: null if the
 * call has no `out`. Makes no objects, except errors.
 */
export function checkRun(
  form: Form,
  typeOfX: DType,
  shapeOfX: readonly number[],
  typeOfOut: DType | null,
  shapeOfOut: readonly number[],
): void {
  const op = 'run';
  const k = form[0],
    n = form[1];
  const quantized = form[8] === 0 ? 'float32' : (quantizedTypes[form[7]] as DType);
  if (typeOfX !== 'float32' && typeOfX !== quantized) {
    const rule = quantized === 'float32' ? 'float32' : `float32 or ${quantized}`;
    throw new DTypeError(op, 'x', `${op}: x has type ${typeOfX}; it must be ${rule}`);
  }
  const last = shapeOfX.length - 1;
  if (last < 0 || shapeOfX[last] !== k) {
    const trans = last >= 0 && shapeOfX[last] === n ? '; set trans if weights is (N, K)' : '';
    const rule = `its last size must be K, which is ${k} in the weights${trans}`;
    throw new ShapeError(op, 'x', `${op}: x has shape [${shapeOfX.join(', ')}]; ${rule}`);
  }
  if (typeOfOut === null) return;
  const result = form[11] === 0 ? 'float32' : (quantizedTypes[form[10]] as DType);
  if (typeOfOut !== result)
    throw new DTypeError(
      op,
      'out',
      `${op}: out has type ${typeOfOut}; the result has type ${result}`,
    );
  let isRight = shapeOfOut.length === last + 1 && shapeOfOut[last] === n;
  for (let axis = 0; axis < last; ++axis) isRight &&= shapeOfOut[axis] === shapeOfX[axis];
  if (isRight) return;
  const rule = `the result has shape [${[...shapeOfX.slice(0, -1), n].join(', ')}]`;
  throw new ShapeError(op, 'out', `${op}: out has shape [${shapeOfOut.join(', ')}]; ${rule}`);
}
