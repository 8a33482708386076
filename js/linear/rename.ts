/** Errors of operations that a layer uses, as a layer says them. */
import { GemmError } from '../base/errors.js';
import { contiguousStrides } from '../base/layout.js';

/** Operands as the errors of operations name them, and as a layer names them. */
const names: readonly (readonly [RegExp, string])[] = [
  [/\b(src|A)\b/g, 'x'],
  [/; (only bias may|it must overlap).*/, '; it must overlap no input'],
];
const namesInCreate: typeof names = [
  [/\b[xB]\b/, 'weights'],
  [/\baScale\b/, 'input.scale'],
  [/\bbScale\b/, 'weights.scale'],
];

/**
 * @internal Renames the operands in an error of an operation that a layer uses. `shape` is the
 * shape of x, which `quantize` sees as a row; undefined: the error is of `createLinear`.
 */
export function renamed(error: unknown, op: string, shape?: readonly number[]): unknown {
  if (!(error instanceof GemmError) || error.constructor === GemmError) return error;
  const rename = (text: string) =>
    (shape ? names : namesInCreate).reduce((text, [from, to]) => text.replace(from, to), text);
  const place = (_: string, index: string) => {
    const at = contiguousStrides(shape as number[]).map(
      (step, axis) => Math.floor(+index / step) % (shape?.[axis] as number),
    );
    return `at [${at.join(', ')}]`;
  };
  let message = rename(error.message.replace(/^\w+/, op));
  if (shape) message = message.replace(/at \[0, (\d+)\]/, place);
  const Same = error.constructor as new (op: string, argument: string, text: string) => GemmError;
  return new Same(op, rename(error.argument), message);
}
