// Products whose operands are ten times maxMemory, in turns with the same products in a memory that
// holds them.
//   node tests/bench/out-of-core.mjs [--threads 1]
import { createGemm } from 'wgemm';
import { main } from '../../scripts/run.mjs';
import { randomArray } from './data.mjs';
import { readOptions } from './options.mjs';
import { bestAndMedian } from './turns.mjs';

const turns = 10;
await main(async () => {
  const { threads } = readOptions({});
  for (const [m, k, n] of [
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [512, 8192, 512],
  ]) {
    const operands = 4 * (m * k + k * n + m * n);
    const maxMemory = Math.floor(operands / 10);
    using whole = await createGemm({ threads });
    using small = await createGemm({ threads, maxMemory });
    const [a, b] = [
      { data: randomArray('float32', m * k, 1), shape: [m, k] },
      { data: randomArray('float32', k * n, 2), shape: [k, n] },
    ];
    const contestants = [whole, small].map((wg) => {
      const out = { data: new Float32Array(m * n), shape: [m, n] };
      return { out, times: [], run: () => wg.gemm(a, b, null, { out }) };
    });
    for (let turn = 0; turn <= turns; ++turn) {
      for (const { run, times } of contestants) {
        const start = performance.now();
        run();
        if (turn > 0) times.push(performance.now() - start);
      }
    }
    const [inMemory, inBlocks] = contestants.map(({ times }) => bestAndMedian(times));
    const off = contestants[0].out.data.reduce(
      (most, y, i) => Math.max(most, Math.abs(y - contestants[1].out.data[i])),
      0,
    );
    const { outOfCore, copies, blocks, scratch } = small.explain('gemm', a, b);
    if (!outOfCore || off > 1e-3) throw new Error(`outOfCore: ${outOfCore}, off by ${off}`);
    const ms = ({ best, median }) => `${best.toFixed(1)} (${median.toFixed(1)}) ms`;
    console.log(
      `float32 ${m}x${k}x${n}, maxMemory ${maxMemory} bytes, committed ${small.memory().committed}`,
    );
    console.log(
      `  in memory ${ms(inMemory)}, out-of-core ${ms(inBlocks)}, best (median): ` +
        `${percent(inMemory.best, inBlocks.best)} ` +
        `(${percent(inMemory.median, inBlocks.median)}) of the speed`,
    );
    console.log(
      `  copied ${(copies / operands).toFixed(2)} times the operands, blocks ` +
        `${blocks.join(' x ')}, ${scratch} bytes of memory`,
    );
  }
});

function percent(fast, slow) {
  return `${((100 * fast) / slow).toFixed(0)}%`;
}
