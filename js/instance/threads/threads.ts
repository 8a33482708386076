/** Whether threads are possible, and the workers in which the threads of the core run. */
import { lackOfModules, nodeWorkers, type Port, portOf, waitFor } from '../../base/port.js';
import { makeWebWorker } from '../cross-origin.js';
import type { CoreModule, ThreadWorker } from '../glue.js';

/** @internal `kMaxThreads` of wgemm.h. */
export const mostThreads = 64;

/** The most threads of `'auto'`. */
const mostByItself = 16;

/** With more processors, `'auto'` leaves one to the page, the collector and the compiler. */
const fewProcessors = 4;

/** If no worker sends a message for this many milliseconds, starting the threads fails. */
const patience = 4000;

const page = 65536; // bytes

/** @internal Why threads are not possible here; undefined if they are. */
export function lackOfThreads(): string | undefined {
  const { crossOriginIsolated } = globalThis as { crossOriginIsolated?: boolean };
  if (crossOriginIsolated === false) {
    const headers =
      'Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp';
    const found = 'the page is not cross-origin isolated, so it has no shared memory';
    return `${found}; serve it with ${headers}`;
  }
  if (typeof SharedArrayBuffer !== 'function') return 'this engine has no SharedArrayBuffer';
  if (!nodeWorkers() && typeof Worker !== 'function')
    return lackOfModules() ?? 'this runtime has no workers';
  return undefined;
}

/** @internal The threads of `'auto'`. */
export function usualThreads(): number {
  const os = globalThis.process?.getBuiltinModule?.('node:os');
  const count =
    os?.availableParallelism?.() ??
    (globalThis.navigator as { hardwareConcurrency?: number } | undefined)?.hardwareConcurrency;
  const free = count !== undefined && count > fewProcessors ? 1 : 0;
  return Math.min((count ?? 1) - free, mostByItself);
}

/**
 * @internal The memory of an instance: it begins with some bytes, and may take `limit` bytes more
 * (0: the limit of the engine). Some engines commit what shared memory reserves for its growth. If
 * they refuse that, this reserves less.
 */
export function makeMemory(threads: number, limit: number): WebAssembly.Memory {
  const shared = threads > 1;
  const initial = shared ? 16 + 3 * threads : 16; // data of the build, and stacks
  let maximum = limit === 0 ? 65536 : Math.min(65536, initial + Math.ceil(limit / page));
  for (; ; maximum = Math.ceil(maximum / 2)) {
    try {
      return new WebAssembly.Memory({ initial, maximum, shared });
    } catch (error) {
      if (!shared || maximum * page <= 2 ** 28) throw error;
    }
  }
}

/**
 * @internal Starts the threads of a module besides the caller's. Returns a function that ends them.
 * @param script the address of wgemm-thread.js, in Node also a path
 * @param onDeath is called if one of them ends by itself
 */
export async function startThreads(
  module: CoreModule,
  threads: number,
  script: URL | string,
  onDeath: (why: string) => void,
): Promise<() => void> {
  const { PThread } = module as Required<CoreModule>;
  const ports: Port[] = [];
  let fail: (why: string, cause?: unknown) => void = onDeath;
  let ended = false;
  const end = () => {
    ended = true;
    for (const port of ports) port.terminate();
    ports.length = 0;
    PThread.unusedWorkers.length = 0;
    PThread.runningWorkers.length = 0;
  };
  let wait: ReturnType<typeof waitFor> | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      fail = (why, cause) => reject(new Error(why, { cause }));
      let loaded = 0;
      const waiting = waitFor(patience, () => {
        reject(
          new Error(
            `${ports.length - loaded} of ${ports.length} did not answer for ${patience / 1000} s`,
          ),
        );
      });
      wait = waiting;
      const workers = Array.from({ length: threads - 1 }, () => {
        const port = portOf(makeWorker(script));
        ports.push(port);
        return workerOf(port, (why, cause) => ended || fail(why, cause));
      });
      for (const worker of workers) {
        PThread.loadWasmModuleToWorker(worker).then(() => {
          PThread.unusedWorkers.push(worker);
          waiting.renew();
          if (++loaded === workers.length) resolve();
        }, reject);
      }
    });
    fail = onDeath;
    // This waits until each thread runs. Their workers have started, so it does not take long.
    if (module.setThreads(threads) !== 0) throw new Error('not enough memory');
    for (const port of ports) port.hold(false);
    return end;
  } catch (error) {
    end();
    throw error;
  } finally {
    wait?.end();
  }
}

/** A worker, as Emscripten's library uses it. */
function workerOf(port: Port, onDeath: (why: string, cause?: unknown) => void): ThreadWorker {
  const worker: ThreadWorker = {
    postMessage: (message) => port.post(message, []),
    terminate: () => port.terminate(),
    onmessage: null,
  };
  port.listen((data) => worker.onmessage?.({ data }), onDeath);
  return worker;
}

function makeWorker(script: URL | string): object {
  const node = nodeWorkers();
  if (!node) return makeWebWorker(script, 'em-pthread');
  const path = globalThis.process.getBuiltinModule('node:path');
  const address =
    typeof script !== 'string'
      ? script
      : /^[a-z][a-z\d+.-]+:/i.test(script)
        ? new URL(script)
        : path.resolve(script);
  // The worker gets no flags of the process, since --input-type would be wrong for a file. It gets
  // no NODE_OPTIONS, which may name code to run first. The options have no prototype, since Node
  // also reads inherited options.
  const options = Object.setPrototypeOf(
    { execArgv: [], env: {} },
    null,
  ) as import('node:worker_threads').WorkerOptions;
  return new node.Worker(address, options);
}
