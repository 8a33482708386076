/** Weights of MatMulNBits, of float32 and of the blocks of a GGUF file. No instance is needed. */
import { bufferOf, checkAttached, classOf, lengthOf, offsetOf } from '../base/arrays.js';
import { ArgumentError, describe, DTypeError, ShapeError } from '../base/errors.js';
import { type Half, halfOf } from '../base/half.js';
import { readSizes } from '../base/layout.js';
import { readOptions } from '../base/read-options.js';
import type { DataArray, NBitsArray, NewArrays } from '../base/tensor.js';
import { readFlag } from '../call/options.js';
import type { TensorLike, TensorView } from '../instance/heap.js';
import { checkValues, inOrder, readTensorArgument, settle } from './quantize-arguments.js';
import { allocate, greatest } from './quantize-numbers.js';

/**
 * Options of {@link quantizeNBits}.
 *
 * @category Quantization
 */
export interface QuantizeNBitsOptions {
  /** Bits of a code: 2, 4 or 8. Default 4. */
  bits?: 2 | 4 | 8 | undefined;
  /** Steps of K that share a scale: 16, 32, 64, 128 or 256. Default 32. */
  blockSize?: 16 | 32 | 64 | 128 | 256 | undefined;
  /**
   * True: all zero points are 2^(bits - 1), and none are stored. False: each block has one. Default
   * true.
   */
  symmetric?: boolean | undefined;
  /** True: the weights have shape (N, K). Any number except 0 is true. Default false. */
  trans?: boolean | number | undefined;
}

/**
 * The weights that {@link quantizeNBits} and {@link fromGGUF} make, in new arrays that the caller
 * owns.
 *
 * @category Quantization
 */
export interface QuantizedNBits extends NBitsWeights<Float32Array> {
  /** The codes. With nb = ceil(k / blockSize) their shape is [n, nb, blockSize * bits / 8]. */
  data: {
    /** The elements, in row-major order. */
    data: NewArrays['uint8'];
    /** The size of each axis, in elements. */
    shape: [number, number, number];
  };
  /** The scales, of shape [n, nb]. They may be negative. */
  scales: {
    /** The elements, in row-major order. */
    data: NewArrays['float32'];
    /** The size of each axis, in elements. */
    shape: [number, number];
  };
  /** The zero points, of shape [n, ceil(nb * bits / 8)]; absent if all are 2^(bits - 1). */
  zeroPoints?: {
    /** The elements, in row-major order. */
    data: NewArrays['uint8'];
    /** The size of each axis, in elements. */
    shape: [number, number];
  };
  bits: number;
}

/**
 * The blocks of a tensor of a GGUF file, as {@link fromGGUF} takes them.
 *
 * @category Quantization
 */
export interface GGUFTensor {
  /** The type of the tensor in the file. */
  type: 'Q4_0' | 'Q8_0';
  /** The bytes of all blocks, as the file has them. */
  data: Uint8Array;
  /**
   * N rows of K elements: `[n, k]`. A GGUF file lists the sizes in the other order: ne[0] is K, and
   * ne[1] is N. K must be a multiple of 32.
   */
  shape: readonly number[];
}

/**
 * Quantizes float32 weights to 2, 4 or 8 bits for `matmulNBits`, as ONNX Runtime's quantizer does.
 *
 * Each column is cut along K into blocks. The last one may be shorter. With v the number of largest
 * magnitude in a block, its scale is -v / 2^(bits - 1). So v has code 0, and the scale may be
 * negative. Without `symmetric`, min and max include 0, scale = (max - min) / (2^bits - 1), and
 * zeroPoint = round(-min / scale). A code is round(weight * (1 / scale) + zeroPoint), saturated.
 * Each step is rounded to float32, and halves are rounded away from 0.
 *
 * @example
 * const b = { data: new Float32Array(64 * 3).fill(0.5), shape: [64, 3] };
 * const weights = quantizeNBits(b, { bits: 4, blockSize: 32 });
 * weights.data.shape; // [3, 2, 16]
 *
 * @param weights float32, of shape (K, N), or (N, K) with `trans`; each number must be finite. The
 * call only reads it
 * @param options all have defaults
 * @returns codes, scales and zero points, in new arrays
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Quantization
 */
export function quantizeNBits(
  weights: TensorLike<Float32Array> | TensorView<Float32Array>,
  options?: QuantizeNBitsOptions | null,
): QuantizedNBits;
export function quantizeNBits(weights: unknown, options?: unknown): QuantizedNBits {
  const op = 'quantizeNBits';
  const given = readOptions(op, options, ['bits', 'blockSize', 'symmetric', 'trans']);
  const bits = readOneOf(op, 'bits', given.bits, 4, [2, 4, 8]);
  const blockSize = readOneOf(op, 'blockSize', given.blockSize, 32, [16, 32, 64, 128, 256]);
  const symmetric = readFlag(op, 'symmetric', given.symmetric, 1) !== 0;
  const trans = readFlag(op, 'trans', given.trans, 0) !== 0;
  const tensor = readTensorArgument(op, 'weights', weights, ['float32']);
  const { shape } = tensor;
  if (shape.length !== 2) {
    const found = `weights has shape [${shape.join(', ')}] of rank ${shape.length}`;
    const rule = 'it must have rank 2: (K, N), or (N, K) with trans';
    throw new ShapeError(op, 'weights', `${op}: ${found}; ${rule}`);
  }
  settle(op, 'weights', tensor);
  const values = inOrder(op, 'weights', tensor);
  checkValues(op, 'weights', values, shape, true);

  const [n, k] = (trans ? shape : [shape[1], shape[0]]) as [number, number];
  const [column, step] = trans ? [k, 1] : [1, n];
  const made = makeNBits(op, 'weights', n, k, bits, blockSize, !symmetric);
  const { data, scales } = made;
  const zeroPoints = symmetric ? undefined : made.zeroPoints; // not a property of Object.prototype
  const [blocks, most] = [scales.shape[1], 2 ** bits - 1];
  for (let block = 0; block < n * blocks; ++block) {
    const first = (block % blocks) * blockSize;
    const start = Math.floor(block / blocks) * column + first * step;
    const end = start + Math.min(blockSize, k - first) * step;
    const [scale, zero] = scaleOf(values, start, end, step, most, symmetric);
    scales.data[block] = scale;
    if (zeroPoints) {
      const at = Math.floor(block / blocks) * zeroPoints.shape[1] * 8 + (block % blocks) * bits;
      setCode(zeroPoints.data, at, zero);
    }
    const inverse = inverseOf(scale);
    for (let i = start, at = block * blockSize * bits; i < end; i += step, at += bits) {
      const code = Math.fround(Math.fround((values[i] as number) * inverse) + zero);
      setCode(data.data, at, Math.max(0, Math.min(Math.floor(code + 0.5), most)));
    }
  }
  return made;
}

/** The scale of a block and its zero point. */
function scaleOf(
  values: Float32Array,
  start: number,
  end: number,
  step: number,
  most: number,
  symmetric: boolean,
): [scale: number, zero: number] {
  let low = 0;
  let high = 0;
  for (let i = start; i < end; i += step) {
    const value = values[i] as number;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const centre = (most + 1) / 2;
  if (symmetric) return [Math.fround((high > -low ? high : low) / -centre), centre];
  const exact = high - low;
  const range = Math.fround(exact) < Infinity ? Math.fround(exact) : exact;
  const scale = Math.fround(range / most);
  if (scale === 0) return [0, 0];
  return [scale, Math.min(Math.floor(Math.fround(-low / scale) + 0.5), most)];
}

/** 1 / scale in float32. For a scale near 0 it is too large for float32, and stays a float64. */
function inverseOf(scale: number): number {
  const inverse = 1 / scale;
  if (scale === 0) return 0;
  return Math.abs(inverse) > greatest ? inverse : Math.fround(inverse);
}

/** Writes a code to bytes that are 0 there. A code is within one byte. */
function setCode(bytes: Uint8Array, bit: number, code: number): void {
  const at = Math.floor(bit / 8);
  bytes[at] = (bytes[at] as number) | (code << (bit % 8));
}

/**
 * Makes weights of `matmulNBits` of a tensor of a GGUF file. They stand for the same numbers.
 *
 * A Q4_0 block is a float16 scale d and 16 bytes. The low 4 bits are elements 0 to 15, and the high
 * 4 bits are elements 16 to 31. Each element stands for (code - 8) * d. A Q8_0 block is d and 32
 * elements of int8, which stand for element * d.
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 *
 * @example
 * const data = new Uint8Array(2 * 18); // two blocks
 * const weights = fromGGUF({ type: 'Q4_0', data, shape: [1, 64] });
 * weights.bits; // 4
 *
 * @param tensor the blocks, with their type and shape. The call only reads them
 * @returns codes, and scales in float32, in new arrays
 * @throws ShapeError, DTypeError, ArgumentError, OutOfMemoryError
 *
 * @category Quantization
 */
export function fromGGUF(tensor: GGUFTensor): QuantizedNBits;
export function fromGGUF(tensor: unknown): QuantizedNBits {
  const op = 'fromGGUF';
  const given = readOptions(op, tensor, ['type', 'data', 'shape'], 'tensor');
  const { type } = given;
  if (type !== 'Q4_0' && type !== 'Q8_0') {
    throw new DTypeError(
      op,
      'type',
      `${op}: type is ${describe(type)}; it must be 'Q4_0' or 'Q8_0'`,
    );
  }
  const { data: array, shape } = given;
  const sizes = readSizes(op, 'shape', 'shape is', shape);
  const [n = 0, k = 0] = sizes;
  if (sizes.length !== 2 || k % 32 !== 0) {
    throw new ShapeError(
      op,
      'shape',
      `${op}: shape is [${sizes.join(', ')}]; it must be [n, k], with k a multiple of 32`,
    );
  }
  const found = classOf(array);
  if (found !== 'Uint8Array') {
    throw new DTypeError(
      op,
      'data',
      `${op}: data is ${found ?? describe(array)}; it must be a Uint8Array`,
    );
  }
  const bytes = array as Uint8Array;
  checkAttached(op, 'data', bytes, 'is a detached array');
  const bits = type === 'Q4_0' ? 4 : 8;
  const codes = 4 * bits; // bytes of a block's codes, behind its scale
  const [length, needed] = [lengthOf(bytes), n * (k / 32) * (codes + 2)];
  if (length !== needed) {
    throw new ShapeError(
      op,
      'data',
      `${op}: data has ${length} bytes; shape [${n}, ${k}] of ${type} needs ${needed}`,
    );
  }
  const from = new Uint8Array(bufferOf(bytes) as ArrayBuffer, offsetOf(bytes), length);
  const made = makeNBits(op, 'data', n, k, bits, 32, false);
  const [to, scales] = [made.data.data, made.scales.data];
  const { values } = halfOf('float16') as Half;
  for (let block = 0; block < scales.length; ++block) {
    const at = block * (codes + 2);
    scales[block] = values[(from[at] as number) | ((from[at + 1] as number) << 8)] as number;
    for (let i = 0; i < 32; ++i) {
      const byte = from[at + 2 + (i % codes)] as number;
      // int8 + 128 has the bits of int8, except for the highest.
      const code = bits === 8 ? byte ^ 128 : i < 16 ? byte & 15 : byte >> 4;
      setCode(to, (block * 32 + i) * bits, code);
    }
  }
  return made;
}

/** Weights whose codes and scales are 0. */
function makeNBits(
  op: string,
  name: string,
  n: number,
  k: number,
  bits: number,
  blockSize: number,
  hasZeroPoints: boolean,
): QuantizedNBits {
  const blocks = Math.ceil(k / blockSize);
  const codes = (blockSize * bits) / 8;
  const zeros = Math.ceil((blocks * bits) / 8);
  return {
    data: {
      data: allocate(op, name, 'uint8', n * blocks * codes) as NewArrays['uint8'],
      shape: [n, blocks, codes],
    },
    scales: {
      data: allocate(op, name, 'float32', n * blocks) as NewArrays['float32'],
      shape: [n, blocks],
    },
    ...(hasZeroPoints && {
      zeroPoints: {
        data: allocate(op, name, 'uint8', n * zeros) as NewArrays['uint8'],
        shape: [n, zeros] as [number, number],
      },
    }),
    k,
    n,
    bits,
    blockSize,
  };
}

function readOneOf(
  op: string,
  name: string,
  value: unknown,
  whenAbsent: number,
  allowed: readonly number[],
): number {
  if (value === undefined) return whenAbsent;
  if (allowed.includes(value as number)) return value as number;
  const rule = `${allowed.slice(0, -1).join(', ')} or ${allowed.at(-1)}`;
  throw new ArgumentError(op, name, `${op}: ${name} is ${describe(value)}; it must be ${rule}`);
}

/**
 * Weights of `matmulNBits`: codes of a few bits. Each column has a scale and a zero point for each
 * block of `blockSize` steps of K. A code stands for (code - zero point) * scale. `quantizeNBits`
 * and `fromGGUF` make such weights. With nb = ceil(k / blockSize), the number of blocks of a
 * column:
 *
 * @typeParam A the class of the array of the scales
 * @category Operations
 */
export interface NBitsWeights<A extends DataArray = NBitsArray> {
  /**
   * The codes: uint8, contiguous, of shape [n, nb, blockSize * bits / 8]. Each column has its codes
   * along k, without gaps, the first in the lowest bits. Codes beyond k may have any value.
   */
  data: TensorLike<Uint8Array> | TensorView<Uint8Array>;
  /** The scales: contiguous, of the type of a, and of shape [n, nb] or [n * nb]. */
  scales: TensorLike<A> | TensorView<A>;
  /**
   * The zero points, contiguous. Either codes in uint8, of shape [n, ceil(nb * bits / 8)] or flat,
   * with as many bits as the codes of `data`. Each column then starts at a new byte. Or numbers of
   * the type of the scales, in the shape of the scales. Default: 2^(bits - 1) for all blocks.
   */
  zeroPoints?: TensorLike<Uint8Array | A> | TensorView<Uint8Array | A> | null | undefined;
  /** K, the rows of B. */
  k: number;
  /** N, the columns of B. */
  n: number;
  /** Bits of a code: 2, 4 or 8. Default 4. */
  bits?: number | undefined;
  /** Steps of K that share a scale: 16, 32, 64, 128 or 256. */
  blockSize: number;
}
