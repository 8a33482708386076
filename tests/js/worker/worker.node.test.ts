/**
 * What tests can see of `wgemm/worker` only in Node: how workers start and die, what keeps a process
 * alive, and what the collector takes.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { GemmError } from 'wgemm';
import { createGemm, type WorkerGemm, type WorkerTensor } from 'wgemm/worker';
import { sourcesOf } from '../support/assets.js';
import { expectError, rejected } from '../support/errors.js';
import { float32 } from '../support/tensors.js';

const script = new URL('wgemm-worker.js', import.meta.resolve('wgemm'));
const wasm = new URL('wgemm-simd128.wasm', script);
const square = () => float32([2, 2], 1, 2, 3, 4);

/**
 * An instance and its worker. The worker runs the script of the package, and `also` when it gets a
 * message `'go'`.
 */
async function start(also = ''): Promise<{ wg: WorkerGemm; worker: Worker }> {
  let worker: Worker | undefined;
  const code = `
    import(${JSON.stringify(script.href)}).then(() => {
      const { parentPort } = require('node:worker_threads');
      parentPort.on('message', (message) => { if (message === 'go') { ${also} } });
    });
  `;
  const wg = await createGemm({
    worker: () => (worker = also ? new Worker(code, { eval: true }) : new Worker(script)),
  });
  return { wg, worker: worker as Worker };
}

/** Runs a program in a process of its own, with `flags` of Node. Returns what it prints. */
async function run(program: string, flags: string[] = []): Promise<string> {
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  const all = [...flags, '--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, all, {
    cwd: root,
    timeout: 20_000,
    maxBuffer: 2 ** 26, // Node writes of each overflow of the stack
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  return stdout;
}

it('reading a tensor throws OutOfMemoryError if the engine has no array for it', async () => {
  const { wg, worker } = await start(
    'Float32Array.prototype.slice = () => { throw new RangeError("Array buffer allocation failed"); }',
  );
  const tensor = await wg.alloc('float32', [3]);
  worker.postMessage('go');
  const wanted = { code: 'OUT_OF_MEMORY' as const, op: 'read', argument: '', says: ['3 elements'] };
  expectError(await rejected(tensor.read()), wanted);
  expect((await wg.memory()).inUse).toBeGreaterThan(0);
  wg.dispose();
});

describe('when the worker dies', () => {
  const died = (op: string, ...says: string[]) => ({
    code: 'WORKER' as const,
    op,
    argument: '',
    says: ['the worker died', ...says],
  });

  /** Expects that pending and later calls are rejected. */
  async function expectDead(wg: WorkerGemm, die: () => unknown, ...says: string[]): Promise<void> {
    const heap = await wg.alloc('float32', [2, 2]);
    const large = { data: new Float32Array(640_000), shape: [800, 800] };
    const out = square();
    die();
    const pending = {
      gemm: wg.gemm(large, large),
      matmul: wg.matmul(square(), square(), null, { out }),
      read: heap.read(),
      memory: wg.memory(),
    };
    const errors = await Promise.all(Object.values(pending).map(rejected));
    for (const [i, op] of Object.keys(pending).entries())
      expectError(errors[i], { ...died(op, ...says), argument: '' });
    const later = {
      gemm: wg.gemm(square(), square()),
      alloc: wg.alloc('int8', [1]),
      read: heap.read(),
    };
    for (const [op, call] of Object.entries(later))
      expectError(await rejected(call), died(op, ...says));
    expect(out).toEqual(square());
    expect([wg.disposed, heap.disposed]).toEqual([true, true]);
    heap.dispose();
    wg.dispose();
    expectError(await rejected(wg.memory()), died('memory', ...says));
  }

  it('by process.exit() inside', async () => {
    const { wg, worker } = await start('process.exit(3)');
    await expectDead(wg, () => worker.postMessage('go'), 'ended with code 3');
  });

  it('by an error that ends its instance', async () => {
    const { wg, worker } = await start(
      'Uint8Array.prototype.set = () => { throw new RangeError("mine"); }',
    );
    worker.postMessage('go');
    expectError(await rejected(wg.gemm(square(), square())), died('gemm', 'mine'));
    expectError(await rejected(wg.memory()), died('memory', 'mine'));
    expect(wg.disposed).toBe(true);
  });

  it('by an error that nobody catches', async () => {
    const { wg, worker } = await start('throw new RangeError("mine")');
    await expectDead(wg, () => worker.postMessage('go'), 'mine');
    expect(((await rejected(wg.memory())) as GemmError).cause).toMatchObject({
      name: 'RangeError',
      message: 'mine',
    });
  });

  it('by terminate() from outside', async () => {
    const { wg, worker } = await start();
    await expectDead(wg, () => worker.terminate(), 'ended with code 1');
  });

  it('while it is idle', async () => {
    const { wg, worker } = await start();
    await worker.terminate();
    expectError(await rejected(wg.gemm(square(), square())), died('gemm', 'ended with code 1'));
    expect(wg.disposed).toBe(true);
  });
});

describe('a worker that does not start', () => {
  const wanted = (...says: string[]) => ({
    code: 'LOAD' as const,
    op: 'createGemm',
    argument: '',
    says: ['does not start', 'wgemm-worker.js', ...says],
  });
  const options: WorkerOptions = { eval: true };
  // This begins here, so that its waiting overlaps with the other tests.
  const silent = rejected(
    createGemm({ worker: () => new Worker('setInterval(() => undefined, 1000)', options) }),
  );

  it('since its script says nothing', async () => {
    expectError(await silent, wanted('no answer for 10 s'));
  });

  it.each([
    ['is missing', () => new Worker(new URL('absent.js', script)), ['absent.js']],
    ['throws', () => new Worker('throw new RangeError("mine")', options), ['mine']],
    ['is not a script', () => new Worker('<html>', options), ['Unexpected token']],
    ['ends at once', () => new Worker('', options), ['code 0']],
    ['exits', () => new Worker('process.exit(5)', options), ['code 5']],
  ])('since its script %s', async (_, worker, says) => {
    const begin = performance.now();
    expectError(await rejected(createGemm({ worker })), wanted(...says));
    expect(performance.now() - begin).toBeLessThan(5000);
  });

  it('ends no other, which may come after it', async () => {
    await rejected(createGemm({ worker: () => new Worker('', options) }));
    const wg = await createGemm();
    expect((await wg.gemm(square(), square())).shape).toEqual([2, 2]);
    wg.dispose();
  });
});

describe('the option worker', () => {
  it('makes the one that is used, and that ends with the instance', async () => {
    const { wg, worker } = await start();
    const ended = new Promise((resolve) => worker.on('exit', resolve));
    expect(Array.from((await wg.gemm(square(), square())).data)).toEqual([7, 10, 15, 22]);
    wg.dispose();
    expect(await ended).toBe(1);
  });

  it('must make one per instance', async () => {
    const { wg, worker } = await start();
    const error = await rejected(createGemm({ worker: () => worker }));
    expectError(error, {
      code: 'ARGUMENT',
      op: 'createGemm',
      argument: 'worker',
      says: ['again', 'one per instance'],
    });
    expect((await wg.gemm(square(), square())).shape).toEqual([2, 2]);
    wg.dispose();
  });

  it('leaves no worker behind where the instance cannot be made', async () => {
    let worker: Worker | undefined;
    const assets = () => '/nowhere.wasm';
    const failed = rejected(createGemm({ assets, worker: () => (worker = new Worker(script)) }));
    const ended = new Promise((resolve) => worker?.on('exit', resolve));
    expect(await failed).toMatchObject({ code: 'LOAD' });
    await ended;
  });

  it('makes none for options that are wrong', async () => {
    let made = 0;
    const failed = rejected(createGemm({ threads: 99, worker: () => ++made }));
    expect(await failed).toMatchObject({ code: 'ARGUMENT', argument: 'threads' });
    expect(made).toBe(0);
  });
});

it('takes the arrays of a call by the number of that call', async () => {
  const { wg, worker } = await start();
  const post = worker.postMessage.bind(worker);
  worker.postMessage = (order: { kind: string }, transfer) => {
    if (order.kind === 'packet')
      post({ kind: 'packet', id: 12345, packet: { args: [5], buffers: [] } });
    post(order, transfer);
  };
  const y = await wg.gemm(square(), square(), null, { transfer: true });
  expect(Array.from(y.data)).toEqual([7, 10, 15, 22]);
  wg.dispose();
});

describe('a query in an address', () => {
  // In a process of its own, since vitest imports by addresses of its own.
  it.each(['?v=1', '?v=1/2', '#1/2', '?v=../3/wgemm.js#4/5'])(
    '%s leads to the files next to',
    async (query) => {
      const program = `
      import { Worker } from 'node:worker_threads';
      const script = new URL('wgemm-worker.js${query}', ${JSON.stringify(script.href)});
      const { createGemm } = await import(new URL('worker.js${query}', script));
      const worker = () => new Worker(script, { execArgv: [] });
      for (const options of [{}, { worker }, { threads: 2 }, { threads: 2, worker }]) {
        const wg = await createGemm(options);
        const square = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] };
        console.log(wg.info.threads, (await wg.gemm(square, square)).data.join());
        wg.dispose();
      }
    `;
      expect(await run(program)).toBe(
        [1, 1, 2, 2].map((threads) => `${threads} 7,10,15,22\n`).join(''),
      );
    },
  );
});

describe('the option assets', () => {
  it('gives addresses, bytes and modules, now or later', async () => {
    const bytes = await readFile(wasm);
    const asked: string[] = [];
    const gives = sourcesOf(wasm, bytes);
    for (const source of gives) {
      const instance = await createGemm({
        simd: 'simd128',
        assets(file) {
          asked.push(file);
          return asked.length % 2 ? source : Promise.resolve(source);
        },
      });
      expect(Array.from((await instance.gemm(square(), square())).data)).toEqual([7, 10, 15, 22]);
      instance.dispose();
    }
    expect(asked).toEqual(Array(gives.length).fill('wgemm-simd128.wasm'));
    expect(bytes.length, 'the bytes are the caller’s').toBeGreaterThan(10_000);
  });

  it('is asked for the module with the operators of models', async () => {
    const asked: string[] = [];
    const assets = (file: string) => {
      asked.push(file);
      return new URL(import.meta.resolve(`wgemm/assets/${file}`));
    };
    for (const models of [true, false]) {
      const instance = await createGemm({ simd: 'simd128', models, assets });
      expect(Array.from((await instance.gemm(square(), square())).data)).toEqual([7, 10, 15, 22]);
      instance.dispose();
    }
    expect(asked).toEqual(['wgemm-simd128-models.wasm', 'wgemm-simd128.wasm']);
  });

  it('says so where they lead nowhere', async () => {
    const load = (...says: string[]) => ({
      code: 'LOAD' as const,
      op: 'createGemm',
      argument: '',
      says,
    });
    const absent = new URL('absent.wasm', wasm);
    const error = (await rejected(createGemm({ assets: () => absent }))) as GemmError;
    expectError(error, load(absent.href, 'ENOENT', 'option assets'));
    expect(error.cause).toBeInstanceOf(Error);
    expect(error.cause).toMatchObject({
      name: 'Error',
      message: expect.stringContaining('ENOENT') as string,
    });
    expectError(
      await rejected(createGemm({ assets: () => 'not an address' })),
      load('not an address', 'cannot be fetched'),
    );
    expectError(
      await rejected(createGemm({ assets: () => new Uint8Array(100) })),
      load('is not WebAssembly'),
    );
  });
});

describe('a process', () => {
  const program = (body: string) => `
    import { createGemm } from 'wgemm/worker';
    const square = () => ({ data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] });
    ${body}
  `;

  it('is not kept alive by an instance, its tensors and its weights', async () => {
    const body = `
      const wg = globalThis.wg = await createGemm();
      globalThis.held = [await wg.alloc('float32', [2, 2]), await wg.pack(square(), { op: 'gemm' })];
      await wg.gemm(square(), square());
      await wg.gemm(5).catch(() => {});
      console.log('end');
    `;
    expect(await run(program(body))).toBe('end\n');
  });

  it('is kept alive by a call that is pending, and by the making of an instance', async () => {
    const body = `
      createGemm().then((wg) => setTimeout(() => {
        const large = { data: new Float32Array(250000).fill(1), shape: [500, 500] };
        wg.gemm(large, large).then(({ data }) => console.log(data[0]));
        wg.memory();
      }, 50));
    `;
    expect(await run(program(body))).toBe('500\n');
  });

  it('is not kept alive by a call that was cancelled', async () => {
    const body = `
      const wg = globalThis.wg = await createGemm();
      const controller = new AbortController();
      const y = wg.gemm(square(), square(), null, { signal: controller.signal });
      controller.abort();
      await y.catch(({ name }) => console.log(name));
    `;
    expect(await run(program(body))).toBe('AbortError\n');
  });

  it('is not kept alive by a call that could not be sent', async () => {
    const body = `
      import { Worker } from 'node:worker_threads';
      const script = new URL('wgemm-worker.js', import.meta.resolve('wgemm'));
      const worker = new Worker(script, { execArgv: [] });
      const wg = globalThis.wg = await createGemm({ worker: () => worker });
      worker.postMessage = () => { throw new TypeError('mine'); };
      await wg.gemm(square(), square()).catch(({ code }) => console.log(code));
      delete worker.postMessage;
      console.log((await wg.gemm(square(), square())).data.join());
    `;
    expect(await run(program(body))).toBe('WORKER\n7,10,15,22\n');
  });

  it('is not kept alive by a call that threw when it had made the worker hold it', async () => {
    const body = `
      import { Worker } from 'node:worker_threads';
      const script = new URL('wgemm-worker.js', import.meta.resolve('wgemm'));
      const worker = new Worker(script, { execArgv: [] });
      const wg = globalThis.wg = await createGemm({ worker: () => worker });
      worker.ref = () => {
        delete worker.ref;
        worker.ref();
        throw new RangeError('mine');
      };
      await wg.memory().catch(({ message }) => console.log(message));
    `;
    expect(await run(program(body))).toBe('mine\n');
  });

  it('is not kept alive by calls that overflowed the stack', async () => {
    const body = `
      // If catch() does not fit on the stack, nothing handles the rejection of its call.
      process.on('unhandledRejection', () => {});
      const wg = globalThis.wg = await createGemm();
      let made = 0;
      for (let round = 0; round < 300; ++round) {
        const calls = [];
        const call = () => {
          try {
            calls.push(wg.memory().catch(() => {}));
          } catch {}
        };
        const recurse = () => {
          try {
            recurse();
          } catch {}
          if (calls.length < 25) call();
        };
        const begin = (depth) => (depth ? begin(depth - 1) : recurse());
        begin(round % 40);
        made += calls.length;
        await Promise.all(calls);
      }
      console.log(made > 0);
    `;
    expect(await run(program(body))).toBe('true\n');
  });

  it('may have options of workers in Object.prototype', async () => {
    const body = `
      import { createGemm as createHere } from 'wgemm';
      Object.defineProperty(Object.prototype, 'eval', { value: true, configurable: true });
      const [wg, here] = await Promise.all([createGemm(), createHere({ threads: 2 })]);
      console.log((await wg.gemm(square(), square())).data.join(), here.info.threads);
      here.dispose();
    `;
    expect(await run(program(body))).toBe('7,10,15,22 2\n');
  });

  it('may have flags that are not for workers', async () => {
    const body = `const wg = await createGemm(); console.log((await wg.gemm(square(), square())).data.join());`;
    expect(await run(program(body), ['--expose-gc', '--max-old-space-size=200'])).toBe(
      '7,10,15,22\n',
    );
  });
});

describe('the collector', () => {
  /** Runs the collector until `done`, or for 5 seconds. */
  async function collectUntil(done: () => boolean | Promise<boolean>): Promise<boolean> {
    const turn = () => new Promise((resolve) => setTimeout(resolve, 1));
    const end = performance.now() + 5000;
    while (performance.now() < end) {
      await turn(); // what a WeakRef gave out lives until the turn is over
      (globalThis.gc as () => void)();
      await turn();
      if (await done()) return true;
    }
    return false;
  }

  it('gives the memory of handles back that were dropped, and of no others', async () => {
    const wg = await createGemm();
    const kept = await wg.alloc('float32', [4]);
    await kept.write(square().data);
    const { inUse } = await wg.memory();
    await (async () => {
      const large = { data: new Float32Array(10_000), shape: [100, 100] };
      await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          i % 2 ? wg.alloc('float32', [1000]) : wg.pack(large, { op: 'gemm' }),
        ),
      );
    })();
    expect((await wg.memory()).inUse).toBeGreaterThan(inUse + 200_000);
    expect(await collectUntil(async () => (await wg.memory()).inUse === inUse)).toBe(true);
    expect(await kept.read()).toEqual(square().data);
    wg.dispose();
  });

  it('leaves a tensor that was dropped to the calls that were made with it', async () => {
    const wg = await createGemm();
    const large = { data: new Float32Array(640_000).fill(1), shape: [800, 800] };
    const first = wg.gemm(large, large);
    const calls = await (async () => {
      const heap = await wg.alloc('float32', [2, 2]);
      const written = heap.write(square().data);
      const y = wg.gemm(heap, heap);
      const read = heap.read();
      return [written, y, read] as const;
    })();
    for (let i = 0; i < 5; ++i) await collectUntil(() => true);
    await first;
    expect(Array.from((await calls[1]).data)).toEqual([7, 10, 15, 22]);
    expect(await calls[2]).toEqual(square().data);
    expect(await collectUntil(async () => (await wg.memory()).inUse === 0)).toBe(true);
    wg.dispose();
  });

  it('ends the worker of an instance that was dropped, and not while a handle or a call of it is there', async () => {
    const begin = async () => {
      const { wg, worker } = await start();
      const heap = await wg.alloc('float32', [2, 2]);
      return {
        instance: new WeakRef(wg),
        worker,
        holder: { heap } as { heap?: WorkerTensor<Float32Array> },
      };
    };
    const { instance, worker, holder } = await begin();
    let ended = false;
    worker.on('exit', () => (ended = true));
    for (let i = 0; i < 5; ++i) await collectUntil(() => true);
    expect(ended).toBe(false);
    expect(await holder.heap?.read()).toEqual(new Float32Array(4));
    const pending = holder.heap?.read();
    delete holder.heap;
    for (let i = 0; i < 5; ++i) await collectUntil(() => true);
    expect(await pending).toEqual(new Float32Array(4));
    expect(await collectUntil(() => ended)).toBe(true);
    expect(instance.deref()).toBeUndefined();
  });

  it('takes an instance that was disposed of, while its tensors are held', async () => {
    const begin = async () => {
      const { wg, worker } = await start();
      const heap = await wg.alloc('float32', [2, 2]);
      wg.dispose();
      return { link: new WeakRef(worker), heap };
    };
    const { link, heap } = await begin();
    expect(heap.disposed).toBe(true);
    expect(await collectUntil(() => link.deref() === undefined)).toBe(true);
  });
});

it('takes arrays of other realms, and transfers them', async () => {
  const wg = await createGemm();
  const make = () =>
    runInNewContext('({ data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] })') as ReturnType<
      typeof square
    >;
  const [a, out] = [make(), make()];
  expect(await wg.gemm(a, square(), null, { out })).toBe(out);
  expect(Array.from(out.data)).toEqual([7, 10, 15, 22]);
  expect(Array.from((await wg.gemm(a, out, null, { transfer: true })).data)).toEqual([
    37, 54, 81, 118,
  ]);
  expect([a.data.length, out.data.length]).toEqual([0, 0]);
  wg.dispose();
});
