/** How the page starts a worker. */
import { ArgumentError, describe, UnsupportedError } from '../base/errors.js';
import { lackOfModules, nodeWorkers, type Port, portOf } from '../base/port.js';
import { makeWebWorker, otherOrigin, urlOf } from '../instance/cross-origin.js';
import { adviceForScript } from '../instance/load.js';

const scriptFor = (models: boolean) => (models ? 'wgemm-models-worker.js' : 'wgemm-worker.js');

/**
 * @internal Makes a worker from the script next to this one.
 * @param models whether it must run models
 */
export function startWorker(models: boolean): unknown {
  const threads = nodeWorkers();
  const address = addressOf(scriptFor(models));
  // Bundlers make other files from the expressions at the end, so this does not use it. The worker
  // gets no flags of the process, since --input-type would be wrong for a file.
  if (threads) {
    if (!address) throw new Error('this script does not know its own address');
    // Node reads inherited options, too.
    const options = Object.setPrototypeOf(
      { execArgv: [] },
      null,
    ) as import('node:worker_threads').WorkerOptions;
    return new threads.Worker(address, options);
  }
  if (typeof Worker !== 'function')
    throw new UnsupportedError(
      'createGemm',
      '',
      'createGemm: ' +
        (lackOfModules() ?? 'this runtime has no workers; use wgemm instead of wgemm/worker'),
    );
  if (address && otherOrigin(address)) return makeWebWorker(address);
  return models
    ? new Worker(new URL('./wgemm-models-worker.js', import.meta.url), { type: 'module' })
    : new Worker(new URL('./wgemm-worker.js', import.meta.url), { type: 'module' });
}

/** Where a script is without a bundler; undefined if this one does not know its own address. */
function addressOf(script: string): URL | undefined {
  const own = import.meta.url as string | undefined;
  return own ? urlOf(script, own) : undefined;
}

/** @internal The advice if the worker does not start. `isGiven`: the option `worker` made it. */
export function adviceForWorker(isGiven: boolean, models: boolean): string {
  const script = scriptFor(models);
  return adviceForScript(script, isGiven ? undefined : addressOf(script));
}

/** Workers that have an instance. */
const taken = new WeakSet<object>();

/** @internal The port of a worker that the option `worker` returned. */
export function portOfWorker(made: unknown, models: boolean): Port {
  const worker = made as Record<string, unknown> | null | undefined;
  const can = (...names: string[]) => names.some((name) => typeof worker?.[name] === 'function');
  if (!worker || !can('postMessage') || !can('terminate') || !can('on', 'addEventListener')) {
    const rule = `it must return a worker of ${scriptFor(models)}`;
    throw new ArgumentError(
      'createGemm',
      'worker',
      `createGemm: worker() returned ${describe(made)}; ${rule}`,
    );
  }
  // Two instances in one worker would each take the answers to the other.
  if (taken.has(worker))
    throw new ArgumentError(
      'createGemm',
      'worker',
      'createGemm: worker() returned the same worker again; it must return one per instance',
    );
  taken.add(worker);
  return portOf(worker);
}
