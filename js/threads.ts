/** Threads: whether there can be any, and the workers in which pthreadpool's run. */
import type { CoreModule, ThreadWorker } from './wgemm-simd128-mt.mjs';
import { nodeWorkers, type Port, portOf, waitFor } from './port.js';

/** As `kMaxThreads` in wgemm.h. @internal */
export const mostThreads = 64;

/** What `'auto'` takes at the most. */
const mostByItself = 8;

/**
 * Milliseconds without a word of any worker after which they are taken for some that do not start.
 */
const patience = 4000;

const page = 65536; // bytes

/** @internal Why there can be no threads here; undefined if there can. */
export function lackOfThreads(): string | undefined {
  const { crossOriginIsolated } = globalThis as { crossOriginIsolated?: boolean };
  if (crossOriginIsolated === false) {
    return 'the page is not cross-origin isolated, so it has no shared memory; serve it with Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp';
  }
  if (typeof SharedArrayBuffer !== 'function') return 'this engine has no SharedArrayBuffer';
  if (!nodeWorkers() && typeof Worker !== 'function') return 'there are no workers here';
  return undefined;
}

/** @internal Threads that `'auto'` asks for. */
export function usualThreads(): number {
  const os = globalThis.process?.getBuiltinModule?.('node:os');
  const count =
    os?.availableParallelism?.() ??
    (globalThis.navigator as { hardwareConcurrency?: number } | undefined)?.hardwareConcurrency;
  return Math.min(count ?? 1, mostByItself);
}

/**
 * @internal The memory of an instance, which never takes more than `limit` bytes (0: what the
 * engine allows) and those it begins with. What is reserved for the growth of shared memory is real
 * in some engines, so that less must do.
 */
export function makeMemory(threads: number, limit: number): WebAssembly.Memory {
  const shared = threads > 1;
  const initial = shared ? 16 + 3 * threads : 16; // of the build, and stacks
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
 * @internal Starts the threads of a module beside the one that calls, and gives a function that
 * ends them. `script`: where wgemm-thread.js is; in Node a path, too. `onDeath`: is called when one
 * of them ends by itself.
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
            `${ports.length - loaded} of ${ports.length} said nothing for ${patience / 1000} s`,
          ),
        );
      });
      wait = waiting;
      const workers = Array.from({ length: threads - 1 }, () => {
        const port = portOf(makeWorker(script));
        ports.push(port);
        // As Emscripten's library looks at it.
        const worker: ThreadWorker = {
          postMessage: (message) => port.post(message, []),
          terminate: () => port.terminate(),
          onmessage: null,
        };
        port.listen(
          (data) => worker.onmessage?.({ data }),
          (why, cause) => ended || fail(why, cause),
        );
        return worker;
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
    // They are alive, so this, which waits until each runs, does not wait long.
    if (module.setThreads(threads) !== 0) throw new Error('there is no memory for it');
    for (const port of ports) port.hold(false);
    return end;
  } catch (error) {
    end();
    throw error;
  } finally {
    wait?.end();
  }
}

function makeWorker(script: URL | string): object {
  const node = nodeWorkers();
  if (!node) return new Worker(script, { type: 'module', name: 'em-pthread' });
  const path = globalThis.process.getBuiltinModule('node:path');
  const address =
    typeof script !== 'string'
      ? script
      : /^[a-z][a-z\d+.-]+:/i.test(script)
        ? new URL(script)
        : path.resolve(script);
  // Without the flags of the process, of which --input-type would be wrong for a file, and without
  // NODE_OPTIONS, which may name code to run before. Node reads inherited options, too.
  const options = Object.setPrototypeOf(
    { execArgv: [], env: {} },
    null,
  ) as import('node:worker_threads').WorkerOptions;
  return new node.Worker(address, options);
}
