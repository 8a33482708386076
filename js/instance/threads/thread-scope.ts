/**
 * Gives a worker of Node the globals that the glue expects of a worker. thread.ts imports it first.
 */
import { nodeWorkers } from '../../base/port.js';

const parent = nodeWorkers()?.parentPort;
if (parent) {
  const scope = {
    self: globalThis,
    name: 'em-pthread', // tells the glue that it is in a thread
    importScripts: () => undefined,
    location: { href: '' },
    postMessage: (message: unknown) => parent.postMessage(message),
    onmessage: null as ((event: { data: unknown }) => void) | null,
  };
  // Bun and Deno have some of them already, read-only.
  for (const [key, value] of Object.entries(scope))
    Object.defineProperty(globalThis, key, { value, writable: true, configurable: true });
  parent.on('message', (data) => (globalThis as unknown as typeof scope).onmessage?.({ data }));
}
