// Times the micro-kernels of the table next to each other, in Node or in a page.
import { pause } from './turns.mjs';

// Large products run the kernels on blocks of many rows, whose B fits a usual L2 cache. A skinny
// GEMM takes longer to read B from memory than to multiply. All sizes except M are multiples of
// every tile.
export const manyRows = { m: 120, n: 256, k: 512 };
const skinny = { n: 4096, k: 4096 };
const skinnyRows = 24; // a kernel that pays from fewer rows on is also timed at its least M

// Engines compile WebAssembly quickly at first, and replace it by better code at some later call.
const warmUpMs = 150;
const warmUpCalls = 4;
// One timing has as many calls as fill this. That is long for the clock of an isolated page, which
// ticks every 20 us in Firefox, and short enough that a busy machine leaves some timings
// undisturbed.
const sampleMs = 3;
const msOfKernel = 350; // for each contestant
const minRounds = 8;

export const sizeOf = ({ m, n, k }) => `${m}x${n}x${k}`;

/**
 * @param factory of the glue; `compiled`: its WebAssembly.Module
 * @param filter text that the name of a product must contain, such as 'float32 120x256x512'
 * @param onProduct called with the name of each as it begins
 * @returns { processor, kernels: rows of the table, products: [{ name, m, n, k, times }] }, where
 *   times are [{ kernel: its index, best, median, tenth }] in ms; a tenth of the timings took
 *   `tenth` or less
 */
export async function raceKernels({ factory, compiled, filter = '', onProduct = () => {} }) {
  const module = await start(factory, compiled);
  const { processor, kernels } = JSON.parse(module.UTF8ToString(module._describe()));
  const products = productsOf(kernels).filter(({ name }) => name.includes(filter));
  for (const product of products) {
    await onProduct(product.name);
    module._set_product(product.m, product.n, product.k);
    product.times = await race(module, product.entrants);
    delete product.entrants;
  }
  return { processor, kernels, products };
}

/** An instance of the program. `onInstance` is called with its WebAssembly.Instance. */
export function start(factory, compiled, onInstance = () => {}) {
  return new Promise((resolve, reject) => {
    const instantiateWasm = (imports, done) => {
      WebAssembly.instantiate(compiled, imports)
        .then((instance) => {
          onInstance(instance);
          done(instance);
        })
        .catch(reject);
      return {};
    };
    factory({ instantiateWasm }).then(resolve, reject);
  });
}

/**
 * For each type: all kernels at many rows, and at the least M of each kernel those that pay there.
 * Kernels that read weights of MatMulNBits as they are packed are left out.
 */
function productsOf(kernels) {
  const entrants = kernels
    .map((kernel, index) => ({ ...kernel, index }))
    .filter(({ readsCodes }) => !readsCodes);
  return [...new Set(entrants.map(({ type }) => type))].flatMap((type) => {
    const ofType = entrants.filter((kernel) => kernel.type === type);
    const rows = ofType.map(({ mMin }) => mMin);
    const small = [...new Set(rows)].filter((m) => m < skinnyRows).sort((a, b) => b - a);
    return [manyRows, ...small.map((m) => ({ m, ...skinny }))].map((size) => ({
      ...size,
      name: `${type} ${sizeOf(size)}`,
      entrants: ofType.filter(({ mMin }) => mMin <= size.m).map(({ index }) => index),
    }));
  });
}

/** Kernels take turns, so that a busy moment of the machine affects all alike. */
async function race(module, entrants) {
  let check = 0;
  const timeOf = (kernel, times) => {
    const start = performance.now();
    check += module._run(kernel, times);
    return (performance.now() - start) / times;
  };
  const runners = [];
  for (const kernel of entrants) {
    timeOf(kernel, 1); // the first fills the operands
    const end = performance.now() + warmUpMs;
    let perCall = Infinity;
    for (let calls = 0; calls < warmUpCalls || performance.now() < end; ++calls)
      perCall = Math.min(perCall, timeOf(kernel, 1));
    // A coarse clock may have shown 0.
    runners.push({
      kernel,
      times: Math.max(1, Math.round(sampleMs / Math.max(perCall, 0.01))),
      samples: [],
    });
    await pause();
  }
  const end = performance.now() + msOfKernel * runners.length;
  for (let round = 0; round < minRounds || performance.now() < end; ++round) {
    for (let i = 0; i < runners.length; ++i) {
      const { kernel, times, samples } = runners[(round + i) % runners.length];
      samples.push(timeOf(kernel, times));
    }
    await pause();
  }
  if (!Number.isFinite(check)) throw new Error('the sums of a kernel are not numbers');
  return runners.map(({ kernel, samples }) => {
    samples.sort((a, b) => a - b);
    return {
      kernel,
      best: samples[0],
      tenth: samples[Math.max(2, Math.floor(samples.length / 10))],
      median: samples[samples.length >> 1],
    };
  });
}
