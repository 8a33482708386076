/** Workers of the web and of Node as one thing. */

/** @internal A worker, as the side that made it sees it. */
export interface Port {
  post(message: unknown, transfer: ArrayBuffer[]): void;
  terminate(): void;
  /** Whether it keeps the process alive. */
  hold(yes: boolean): void;
  /** `onDeath` may be called more than once, also for an end that was asked for. */
  listen(
    onMessage: (message: unknown) => void,
    onDeath: (why: string, cause?: unknown) => void,
  ): void;
}

/**
 * @internal Where Node's workers are, those of the web are lacking (Node) or less than on the web
 * (Bun, Deno).
 */
export function nodeWorkers(): typeof import('node:worker_threads') | undefined {
  return globalThis.process?.getBuiltinModule?.('node:worker_threads');
}

/** That of the web, as far as it is used. */
interface WebWorker {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  terminate(): void;
  addEventListener(type: string, listener: (event: WorkerEvent) => void): void;
}

interface WorkerEvent {
  readonly data?: unknown;
  readonly message?: string;
  readonly error?: unknown;
  preventDefault?(): void;
}

/** @internal */
export function portOf(made: object): Port {
  const worker = made as WebWorker & import('node:worker_threads').Worker;
  const isNode = typeof worker.on === 'function';
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    terminate: () => void worker.terminate(),
    hold: (yes) => isNode && (yes ? worker.ref() : worker.unref()),
    listen(onMessage, onDeath) {
      if (isNode) {
        worker.on('message', onMessage);
        worker.on('messageerror', (error) => onDeath('a message cannot be read', error));
        worker.on('error', (error) => onDeath(messageOf(error), error));
        worker.on('exit', (code) => onDeath(`it ended with code ${code}`));
        return;
      }
      worker.addEventListener('message', ({ data }) => onMessage(data));
      worker.addEventListener('messageerror', () => onDeath('a message cannot be read'));
      worker.addEventListener('error', (event) => {
        event.preventDefault?.(); // the page's own handlers of errors are for what nobody caught
        onDeath(event.message ?? 'its script cannot be loaded or run', event.error);
      });
      // No event tells of its end by others.
      const terminate = worker.terminate.bind(worker);
      worker.terminate = () => {
        onDeath('it was terminated');
        return terminate() as never;
      };
    },
  };
}

/**
 * @internal Calls `late` when nothing was heard for so many milliseconds: since it was made, or
 * since `renew`. It waits one more turn of the event loop, for messages that arrived while the page
 * was busy.
 */
export function waitFor(milliseconds: number, late: () => void): { renew(): void; end(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => clearTimeout(timer);
  const renew = () => {
    end();
    timer = setTimeout(() => (timer = setTimeout(late, 0)), milliseconds);
  };
  renew();
  return { renew, end };
}

/** @internal */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
