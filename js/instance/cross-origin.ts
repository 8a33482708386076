/**
 * Workers whose script has another origin than the page, such as a script of a CDN. Browsers refuse
 * such a script, so the worker starts from a small blob: module, which imports it.
 */

/** @internal The full address, by default relative to this page or worker; undefined if invalid. */
export function urlOf(
  source: URL | string,
  base = globalThis.document?.baseURI ?? globalThis.location?.href,
): URL | undefined {
  try {
    return new URL(source, base);
  } catch {
    return undefined;
  }
}

/**
 * @internal The origin of an address of the web, if it is not the origin of the page. Otherwise
 * undefined, as in Node, where there are no origins.
 *
 * @param own the origin of the page. In a sandbox it is 'null', unlike the origin of its address
 */
export function otherOrigin(
  source: URL | string,
  own = globalThis.origin as string | undefined,
): string | undefined {
  const url = urlOf(source);
  const isOther = url && /^https?:$/.test(url.protocol) && own !== undefined && url.origin !== own;
  return isOther ? url.origin : undefined;
}

/**
 * The script that imports a script. A static import would need less, but WebKit refuses it in an
 * isolated page. So this keeps the messages that arrive before the script listens. It throws the
 * error of the import out of the promise, since only such errors reach the page.
 */
const importing = (address: string) => `const early = [];
const keep = (event) => early.push(event);
addEventListener('message', keep);
import(${JSON.stringify(address)}).then(
  () => {
    removeEventListener('message', keep);
    for (const event of early) dispatchEvent(event);
  },
  (error) => setTimeout(() => { throw error; }),
);`;

/** @internal Makes a worker of the web from a module of any origin. */
export function makeWebWorker(script: URL | string, name = ''): Worker {
  const options: WorkerOptions = { type: 'module', name };
  if (otherOrigin(script) === undefined) return new Worker(script, options);
  const blob = new Blob([importing(String(urlOf(script)))], { type: 'text/javascript' });
  const address = URL.createObjectURL(blob);
  const revoke = () => URL.revokeObjectURL(address);
  try {
    const worker = new Worker(address, options);
    const terminate = worker.terminate.bind(worker);
    worker.terminate = () => {
      revoke();
      terminate();
    };
    for (const type of ['message', 'error']) worker.addEventListener(type, revoke, { once: true });
    return worker;
  } catch (error) {
    revoke(); // WebKit throws what a Content-Security-Policy forbids
    throw error;
  }
}
