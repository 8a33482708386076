// Makes the engine interrupt calls, and checks the instance afterwards. A program for the main
// thread of Node: `node interrupted.mjs SIMD THREADS SCENARIO`. It prints what it found as JSON, and
// ends when nothing keeps it alive.
import vm from 'node:vm';
import { createGemm, GemmError } from 'wgemm';
import { createIndex } from 'wgemm/search';

const [simd, threads, scenario] = process.argv.slice(2);
const create = (options) => createGemm({ simd, threads: Number(threads), ...options });

const wrong = [];
const expect = (condition, what) => condition || wrong.includes(what) || wrong.push(what);

/** Small whole numbers, whose products are exact in every order. */
function matrix(ArrayClass, shape) {
  const data = new ArrayClass(shape.reduce((product, size) => product * size, 1));
  for (let i = 0; i < data.length; ++i) data[i] = (i * 7) % 11;
  return { data, shape };
}

function held(wg, dtype, { data, shape }) {
  const tensor = wg.alloc(dtype, shape);
  tensor.data.set(data);
  return tensor;
}

/**
 * The operands of all calls, and a call for every path through the library. Each returns an array,
 * or undefined if it has none.
 */
function prepare(wg) {
  const [a, b] = [matrix(Float32Array, [20, 30]), matrix(Float32Array, [30, 18])];
  const [large, quantized] = [matrix(Float32Array, [200, 200]), matrix(Uint8Array, [40, 40])];
  const [heapA, heapB, out] = [
    held(wg, 'float32', a),
    held(wg, 'float32', b),
    wg.alloc('float32', [20, 18]),
  ];
  const [heapLarge, outLarge] = [held(wg, 'float32', large), wg.alloc('float32', [200, 200])];
  const heapQuantized = held(wg, 'uint8', quantized);
  const outQuantized = wg.alloc('float32', [40, 40]);
  const weights = wg.pack(b, { op: 'gemm' });
  const bytes = weights.serialize();
  const into = { out };
  const index = createIndex(wg, { dimensions: 30, metric: 'dot', capacity: 32 });
  index.add(a);
  const matches = { positions: new Uint32Array(5), scores: new Float32Array(5) };
  const inputs = { a: quantized, aScale: 1, b: quantized, bScale: 1, aZeroPoint: 3 };
  let last; // what a call did not come to dispose of
  const calls = {
    'gemm of arrays': () => wg.gemm(a, b).data,
    'gemm in the heap': () => wg.gemm(heapA, heapB, null, into).data,
    'gemm of large arrays': () => wg.gemm(large, large).data,
    'gemm in the heap, large': () => wg.gemm(heapLarge, heapLarge, null, { out: outLarge }).data,
    'gemm with packed weights': () => wg.gemm(a, weights).data,
    'matmul of arrays': () => wg.matmul(a, b).data,
    'qgemm of arrays': () => wg.qgemm(inputs).data,
    'qgemm in the heap': () =>
      wg.qgemm({ ...inputs, a: heapQuantized, b: heapQuantized }, { out: outQuantized }).data,
    pack: () => (last = wg.pack(b, { op: 'gemm' })).dispose(),
    serialize: () => weights.serialize(),
    deserialize: () => (last = wg.deserialize(bytes)).dispose(),
    'search with out': () => {
      index.search(a.data.subarray(0, 30), 5, { out: matches });
      return matches.scores;
    },
    'search of several': () =>
      index.search(a, 5).flatMap((found) => found.map(({ score }) => score)),
    explain: () => void wg.explain('gemm', a, b),
    'alloc and dispose': () => (last = wg.alloc('float32', [10, 10])).dispose(),
    memory: () => void wg.memory(),
  };
  const tensors = [
    heapA,
    heapB,
    out,
    heapLarge,
    outLarge,
    heapQuantized,
    outQuantized,
    weights,
    index,
  ];
  return {
    wg,
    calls,
    tensors,
    more: [{ dispose: () => last?.dispose() }],
    heapA,
    inUse: wg.memory().inUse,
  };
}

const same = (x, y) => x === y || (x?.length === y.length && x.every((value, i) => value === y[i]));

let wanted; // of each call
async function start(options) {
  const prepared = prepare(await create(options));
  wanted ??= Object.fromEntries(
    Object.entries(prepared.calls).map(([name, call]) => [name, call()?.slice()]),
  );
  return prepared;
}

const says =
  /^\w+: the instance ended when the engine interrupted its call of \w+ \(.+\); create another with createGemm\(\)$/;

/**
 * Expects, at the start of the stack, that the instance is unchanged, or has ended and says so.
 * Returns whether it has ended.
 */
function verify({ wg, calls, tensors, more, heapA, inUse }, after) {
  for (const tensor of more) tensor.dispose();
  const { disposed } = wg;
  for (const [name, call] of [...Object.entries(calls), ['data', () => heapA.data]]) {
    try {
      const result = call();
      if (disposed) expect(false, `${after}: then ${name} gives something`);
      else expect(name === 'data' || same(result, wanted[name]), `${after}: then ${name} is wrong`);
    } catch (error) {
      if (disposed)
        expect(
          error instanceof GemmError && error.code === 'INTERRUPTED' && says.test(error.message),
          `${after}: then ${name} throws ${error}`,
        );
      else expect(false, `${after}: then ${name} throws ${error}`);
    }
  }
  if (disposed) expect(heapA.disposed, `${after}: then a tensor is alive`);
  else
    expect(wg.memory().inUse === inUse, `${after}: then ${wg.memory().inUse - inUse} bytes leak`);
  for (const tensor of tensors) tensor.dispose();
  if (!disposed) expect(wg.memory().inUse === 0, `${after}: then tensors leak`);
  wg.dispose();
  return disposed;
}

const found = { ended: {}, worked: {} };

/**
 * Makes a call with room for more and more frames on the stack, while it returns from a recursion
 * that was too deep. `words`: words on the stack besides, for steps smaller than a frame.
 */
async function overflow(name, options, make, words) {
  const padding = new Array(words).fill(0);
  const step = Number(threads) > 1 ? 3 : 1; // each attempt starts threads, which takes long
  for (let least = 0, isEnough = false; !isEnough && wrong.length < 5; least += step) {
    const instance = await start(options);
    const { wg } = instance;
    const call = make(instance);
    let frames = 0,
      isOver = false,
      bad;
    const attempt = () => {
      try {
        if (!same(call(), wanted[name])) bad = 'a wrong number';
        isOver = isEnough = true;
      } catch (error) {
        isOver = wg.disposed;
        if (!['INTERRUPTED', 'OUT_OF_MEMORY'].includes(error.code) && error.name !== 'RangeError')
          bad = error;
      }
    };
    const recurse = () => {
      try {
        recurse();
      } catch {
        // it is too deep
      }
      if (isOver || ++frames < least) return;
      least = frames;
      attempt.apply(null, padding);
    };
    attempt(); // compiles it, for which the end of the stack has no room
    isOver = isEnough = false;
    recurse();
    expect(bad === undefined, `${name} near the end of the stack: ${bad}`);
    const count = verify(instance, name) ? found.ended : found.worked;
    count[name] = (count[name] ?? 0) + 1;
  }
}

const scenarios = {
  /** Every call, near the end of the stack. */
  async overflow() {
    const { calls, wg } = await start();
    wg.dispose();
    const all = ['gemm of arrays', ...Object.keys(calls)]; // what ends an instance is compiled by the first
    for (const name of all) await overflow(name, {}, (instance) => instance.calls[name], 0);
    // The memory grows in every attempt.
    wanted.growth = undefined;
    const growing = (instance) => () =>
      void instance.more.push(instance.wg.alloc('uint8', [100_000]));
    await overflow('growth', {}, growing, 5);
    // Block by block: the core calls JavaScript.
    const [a, b] = [matrix(Float32Array, [400, 300]), matrix(Float32Array, [300, 200])];
    const whole = await create();
    wanted['out-of-core'] = whole.gemm(a, b).data;
    whole.dispose();
    await overflow(
      'out-of-core',
      { maxMemory: 700_000 },
      ({ wg }) =>
        () =>
          wg.gemm(a, b).data,
      0,
    );
  },

  /** Calls that `vm` ends, without an exception that they could catch. */
  async timeout() {
    const large = matrix(Float64Array, [1200, 1200]);
    const calls = {
      'heap under a timeout': ({ heap, out, wg }) => wg.gemm(heap, heap, null, { out }),
      'arrays under a timeout': ({ wg }) => wg.gemm(large, large),
    };
    for (const [name, call] of Object.entries(calls)) {
      const instance = await start();
      const { wg } = instance;
      const operands = {
        wg,
        heap: held(wg, 'float64', large),
        out: wg.alloc('float64', large.shape),
      };
      const context = vm.createContext({ run: () => call(operands) });
      // A busy machine may take the first of them before the call has begun.
      for (let timeout = 20; timeout < 200 && !wg.disposed; timeout += 20) {
        try {
          vm.runInContext('run()', context, { timeout });
        } catch (error) {
          expect(error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT', `${name}: ${error}`);
        }
      }
      expect(verify(instance, name), `${name}: the instance works`);
      found.ended[name] = 1;
    }
  },

  /** An instance that ended holds no memory, though it and its tensors are still reachable. */
  async memory() {
    const kept = [];
    for (let i = 0; i < 12; ++i) {
      const instance = await start();
      const { wg, tensors } = instance;
      tensors.push(wg.alloc('uint8', [100e6]));
      const large = matrix(Float64Array, [1000, 1000]);
      const context = vm.createContext({ run: () => wg.gemm(large, large) });
      try {
        vm.runInContext('run()', context, { timeout: 20 });
      } catch {
        // it was in a call, or between two
      }
      kept.push(instance);
    }
    const ended = kept.filter(({ wg }) => wg.disposed).length;
    found.ended.memory = ended;
    for (let i = 0; i < 10; ++i) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const bytes = process.memoryUsage().rss;
    expect(
      bytes < 300e6 + (kept.length - ended) * 110e6,
      `${kept.length} instances, ${ended} of them ended, hold ${bytes} bytes`,
    );
  },
};

await scenarios[scenario]();
console.log(JSON.stringify({ wrong, ...found }));
