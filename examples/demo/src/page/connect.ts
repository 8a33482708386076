/** Starts the engine. */
import { expose, wrap } from 'comlink';
import type { EngineMethods } from '../engine/engine.ts';

/** The engine, as the page sees it: its methods return promises. */
export type Engine = ReturnType<typeof wrap<EngineMethods>>;

export interface Connection {
  engine: Engine;
  /** Why the engine computes in the page and not in a worker; '' if it is in a worker. */
  lack: string;
}

/**
 * Starts the engine in a worker. If there are no workers, starts it in the page, behind a
 * MessageChannel: the parts call it in the same way.
 *
 * @param onDeath is called if the worker ends later. What it was asked is then never answered
 */
export async function connect(onDeath: (why: string) => void): Promise<Connection> {
  let lack = 'This browser has no workers';
  if (typeof Worker === 'function') {
    try {
      return { engine: await inWorker(onDeath), lack: '' };
    } catch (error) {
      lack = `The worker did not start (${error instanceof Error ? error.message : String(error)})`;
    }
  }
  const { engine } = await import('../engine/engine.ts');
  const { port1, port2 } = new MessageChannel();
  expose(engine, port1);
  return { engine: wrap<EngineMethods>(port2), lack };
}

function inWorker(onDeath: (why: string) => void): Promise<Engine> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('../engine/worker.ts', import.meta.url), { type: 'module' });
    let end = (why: string) => reject(new Error(why));
    worker.addEventListener('error', (event) => {
      // An error of the script that the worker loads has no message.
      end(event.message || 'its script does not load');
    });
    const engine = wrap<EngineMethods>(worker);
    void engine.hello().then(() => {
      end = onDeath;
      resolve(engine);
    }, reject);
  });
}
