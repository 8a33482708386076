/** Errors of nodes and of models. */
import { DisposedError, GemmError, OutOfMemoryError } from '../../base/errors.js';
import { messageOf } from '../../base/port.js';
import { isError } from '../../base/properties.js';
import { nameOf, titleOf } from '../operators/operator.js';
import type { OnnxNode } from '../read/model.js';

/** @internal The error of a node, with the node in its message. */
export function errorIn(op: string, node: OnnxNode, error: unknown): unknown {
  const title = titleOf(node);
  const message = messageOf(error);
  if (error instanceof GemmError && /^(run|loadModel): node /.test(message)) return error;
  if (isError(error) && error.name === 'RangeError' && /alloc|length|size/i.test(message))
    return new OutOfMemoryError(op, nameOf(node), `${op}: ${title}: ${message}`);
  if (!(error instanceof GemmError)) return error;
  const told = `${op}: ${title}: ${message.replace(/^(run|loadModel|readOnnx|packFrom): /, '')}`;
  const { code } = error;
  const plain = error.constructor === GemmError;
  const Class = error.constructor as new (...args: string[]) => GemmError;
  return plain
    ? new GemmError(code, op, nameOf(node), told, { cause: error })
    : Object.defineProperty(new Class(op, nameOf(node), told), 'cause', {
        __proto__: null,
        value: error,
        configurable: true,
      } as PropertyDescriptor);
}

/** @internal Throws if a model, or its instance, has ended. */
export function checkAlive(op: string, { disposed }: { readonly disposed: boolean }): void {
  const found = 'the model or its instance is disposed; load the model again by loadModel()';
  if (disposed) throw new DisposedError(op, 'model', `${op}: ${found}`);
}
