/** The handle that the page has of a recording in a worker. */
import { disposable } from '../base/dispose.js';
import { DisposedError } from '../base/errors.js';
import { readOptions } from '../base/read-options.js';
import {
  type CallOptions,
  callOptions,
  type HandleLink,
  numberOf,
  type WorkerObject,
} from './worker-handles.js';

/**
 * Calls that `record` has recorded in a worker. It holds memory there until its `dispose()`, and
 * keeps its operands from garbage collection, but not from their `dispose()`.
 *
 * @category Operations
 */
export class WorkerRecording {
  /** The number of calls. */
  readonly length: number;
  readonly #link: HandleLink;
  readonly #handle: WorkerObject;
  /** The operands: the worker frees what a handle names when the page drops the handle. */
  readonly #operands: readonly unknown[];

  private constructor(
    link: HandleLink,
    handle: WorkerObject,
    length: number,
    operands: readonly unknown[],
  ) {
    this.#link = link;
    this.#handle = handle;
    this.#operands = operands;
    this.length = length;
    Object.freeze(this);
  }

  /** Whether it has ended: by its own `dispose()`, or with its instance. */
  get disposed(): boolean {
    return this.#handle.disposed;
  }

  /**
   * Computes the calls in their order, after all earlier calls and before all later ones.
   *
   * @param options all have defaults
   * @returns a promise that resolves when they are computed
   * @throws by rejection: what `run()` of a recording in `wgemm` throws
   */
  async run(options?: CallOptions): Promise<void> {
    const op = 'run';
    await this.#link.call(op, options, () => {
      readOptions(op, options, callOptions);
      if (this.disposed) {
        const message = `${op}: the recording is disposed; record its calls again`;
        throw new DisposedError(op, 'recording', message);
      }
      return {
        values: { object: numberOf(this.#handle, this.#link, op, 'recording') },
        operands: [],
        result: () => void this.#operands, // keeps this object alive until now
      };
    });
  }

  /** Frees the memory once earlier calls are done. Does nothing the second time. */
  dispose(): void {
    this.#handle.dispose();
  }

  /** The same as `dispose()`, for `using`. */
  declare [Symbol.dispose]: () => void;
}
disposable(WorkerRecording.prototype);

/** @internal The recording that a handle names. */
export const recordingOf = (...args: [HandleLink, WorkerObject, number, readonly unknown[]]) =>
  new (WorkerRecording as unknown as new (...args: unknown[]) => WorkerRecording)(...args);
