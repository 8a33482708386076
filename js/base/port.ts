/** One interface to the workers of the web and of Node. */
import { isError } from './properties.js';

/** @internal A worker, as its maker sees it. */
export interface Port {
  post(message: unknown, transfer: ArrayBuffer[]): void;
  terminate(): void;
  /** Makes it keep the process alive, or not. */
  hold(yes: boolean): void;
  /** `onDeath` may be called more than once, and also after `terminate()`. */
  listen(
    onMessage: (message: unknown) => void,
    onDeath: (why: string, cause?: unknown) => void,
  ): void;
}

/**
 * @internal The workers of Node, if the runtime can start them. They come first: Node has no
 * workers of the web, and workers of the web in Bun and Deno can do less than in browsers. Pages
 * and workers of Electron may have Node's modules, but can start only workers of the web.
 */
export function nodeWorkers(): typeof import('node:worker_threads') | undefined {
  const { process } = globalThis as { process?: NodeJS.Process & { type?: string } };
  return /^(renderer|worker)$/.test(process?.type as string)
    ? undefined
    : process?.getBuiltinModule?.('node:worker_threads');
}

/** @internal Why this Node does not give its own modules; undefined if it does, or is not Node. */
export function lackOfModules(): string | undefined {
  const { process } = globalThis;
  const version = process?.versions?.node;
  return version && !process.getBuiltinModule
    ? `Node ${version} is too old; it must be 20.16 or later in version 20, or 22.3 or later`
    : undefined;
}

/** A worker of the web, as far as it is used here. */
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
        event.preventDefault?.(); // handled here, not by the page's handlers
        onDeath(event.message ?? 'its script cannot be loaded or run', event.error);
      });
      // There is no event for an end by someone else's terminate(). A Web Lock that the worker
      // holds would tell of any end, but it keeps pages out of the back/forward cache.
      const terminate = worker.terminate.bind(worker);
      worker.terminate = () => {
        onDeath('it was terminated');
        return terminate() as never;
      };
    },
  };
}

/**
 * @internal Calls `late` once `milliseconds` have passed since this call or the last `renew`. First
 * it waits one more turn of the event loop, for messages that arrived while the page was busy.
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

/** @internal What a value that was thrown says. Never throws. */
export function messageOf(error: unknown): string {
  try {
    return String(isError(error) ? error.message : error);
  } catch {
    return 'an object'; // describe() would come into each script of a worker
  }
}
