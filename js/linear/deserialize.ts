/** Reads layers from the bytes that bytes.ts describes. */
import { bufferOf, lengthOf, offsetOf, viewOf } from '../base/arrays.js';
import { ArgumentError, PackMismatchError } from '../base/errors.js';
import { type Operand, operandOf } from '../call/operand.js';
import { readEach } from '../convert/quantize-arguments.js';
import { positive } from '../convert/quantize-numbers.js';
import type { Core } from '../instance/core.js';
import { readWeights } from '../ops/pack.js';
import { type Form, quantizedTypes, readQuantizations } from './arguments.js';
import { checksum, magic, numbersAt, vectorsAt, version } from './bytes.js';
import { type Layer, layerOf } from './layer.js';
import { layoutOf } from './memory.js';
import { renamed } from './rename.js';

const op = 'deserializeLinear';
const wrongNumbers = 'is corrupt: its header has invalid numbers';

/** @internal Makes a layer from the bytes that `serialize` returned. */
export function readLayer(core: Core, { source, dtype }: Operand): Layer {
  core.checkAlive(op);
  const given = source as Uint8Array;
  const length = lengthOf(given);
  const from = (start: number, end: number) =>
    viewOf('uint8', bufferOf(given), offsetOf(given) + start, end - start) as Uint8Array;
  const refuse = (what: string) => new PackMismatchError(op, 'bytes', `${op}: bytes ${what}`);
  const checkLength = (least: number) => {
    if (length < least) throw refuse(`has ${length} bytes; expected at least ${least}`);
  };
  checkLength(vectorsAt);
  // Copies, since another thread may change bytes in shared memory.
  const header = from(0, vectorsAt).slice();
  const view = new DataView(header.buffer);
  if (String.fromCharCode(...header.subarray(0, 8)) !== magic)
    throw refuse(`is not a layer: it does not begin with "${magic}"`);
  const found = view.getUint32(8, true);
  if (found !== version)
    throw refuse(`is of version ${found}; this library reads version ${version}`);
  const expected = view.getFloat64(16, true);
  if (length !== expected) throw refuse(`has ${length} bytes; expected ${expected}`);
  const form = Array.from({ length: 13 }, (_, i) =>
    view.getFloat64(numbersAt + 8 * i, true),
  ) as unknown as Form;
  const isSize = (size: number) => Number.isSafeInteger(size) && size >= 0;
  const isFlag = (flag: number) => flag === 0 || flag === 1;
  const hasZerosAlone = form[4] === 1 && form[3] === 0;
  if (!form.slice(0, 2).every(isSize) || !form.slice(2, 5).every(isFlag) || hasZerosAlone)
    throw refuse(wrongNumbers);
  const { starts, c } = layoutOf(form);
  const weightsAt = vectorsAt + c;
  checkLength(weightsAt);
  const bytes = from(0, weightsAt).slice();
  if (checksum(bytes, weightsAt) !== view.getUint32(12, true))
    throw refuse('is corrupt: the checksum does not match the contents');
  const [k, n, bias, isInt8, zeros, min, max, ...ofXAndY] = form;
  const take = (i: 0 | 1 | 2, type: 'float32' | 'uint8', flag: 0 | 1) =>
    flag ? viewOf(type, bytes.buffer, vectorsAt + (starts[i] as number), n) : null;
  const vectors = [take(0, 'float32', bias), take(1, 'float32', isInt8), take(2, 'uint8', zeros)];
  const quantization = ([type, scale, zeroPoint]: number[]) =>
    scale === 0 ? null : { scale, zeroPoint, dtype: quantizedTypes[type as 0 | 1] };
  try {
    const [x, y] = [quantization(ofXAndY.slice(0, 3)), quantization(ofXAndY.slice(3))];
    if (isInt8) readEach(op, 'scale', vectors[1], 'float32', { index: 1, size: n }, ...positive);
    if (readQuantizations(x, y, isInt8 === 1).join() !== ofXAndY.join() || !(min <= max))
      throw refuse(wrongNumbers);
    const weights = readWeights(core, operandOf('bytes', dtype, [], from(weightsAt, length)));
    const allowed = isInt8 ? ['int8', 'uint8'] : ['float32', 'float16', 'bfloat16'];
    if (weights.shape.join() === `${k},${n}` && allowed.includes(weights.dtype))
      return layerOf(core, form, weights, vectors, op);
    weights.dispose();
    throw refuse('has packed weights of another shape or type');
  } catch (error) {
    throw error instanceof ArgumentError ? refuse(wrongNumbers) : renamed(error, op, []);
  }
}
