/**
 * A page of Electron that has Node's modules: it can start only workers of the web, for which
 * workers of Node stand in here.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createGemm } from 'wgemm';
import { createGemm as createInWorker, type WorkerGemm } from 'wgemm/worker';

const threads = process.getBuiltinModule('node:worker_threads');
const { Worker: NodeWorker } = threads;
let started = 0;

/** Has only the methods of a worker of the web. */
class WebWorker extends EventTarget {
  readonly #worker: InstanceType<typeof NodeWorker>;

  constructor(address: URL | string) {
    super();
    ++started;
    this.#worker = new NodeWorker(new URL(address));
    for (const type of ['message', 'error'])
      this.#worker.on(type, (data: unknown) => {
        this.dispatchEvent(Object.assign(new Event(type), { data }));
      });
    this.#worker.unref();
  }
  postMessage(message: unknown, transfer: ArrayBuffer[]) {
    this.#worker.postMessage(message, transfer);
  }
  terminate() {
    void this.#worker.terminate();
  }
}

beforeAll(() => {
  Object.defineProperty(process, 'type', { value: 'renderer', configurable: true });
  vi.stubGlobal('window', globalThis);
  vi.stubGlobal('Worker', WebWorker);
  threads.Worker = class {
    constructor() {
      throw new Error('The V8 platform used by this instance of Node does not support Workers');
    }
  } as unknown as typeof NodeWorker;
});
afterAll(() => {
  delete (process as { type?: string }).type;
  vi.unstubAllGlobals();
  threads.Worker = NodeWorker;
});

const square = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] };

it.each([
  ['wgemm/worker', () => createInWorker(), 1],
  ['threads', () => createGemm({ threads: 3 }), 2],
])('%s starts workers of the web', async (_, create, count) => {
  started = 0;
  const wg = await create();
  const y = await (wg as WorkerGemm).gemm(square, square);
  expect(Array.from(y.data)).toEqual([7, 10, 15, 22]);
  expect(started).toBe(count);
  wg.dispose();
});
