/**
 * Makes a worker of Node look like one of the web, as far as the glue looks. It stands before the
 * glue in thread.ts.
 */
import { nodeWorkers } from './port.js';

const parent = nodeWorkers()?.parentPort;
if (parent) {
  const scope = {
    self: globalThis,
    name: 'em-pthread', // by which the glue knows that it is in a thread
    importScripts: () => undefined,
    location: { href: '' },
    postMessage: (message: unknown) => parent.postMessage(message),
    onmessage: null as ((event: { data: unknown }) => void) | null,
  };
  // Some are there already, and read-only, in Bun and in Deno.
  for (const [key, value] of Object.entries(scope))
    Object.defineProperty(globalThis, key, { value, writable: true, configurable: true });
  parent.on('message', (data) => (globalThis as unknown as typeof scope).onmessage?.({ data }));
}
