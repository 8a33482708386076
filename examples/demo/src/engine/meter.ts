/** The speed of some products here: the figure at the top, and the table. */
import { race, timeOf } from '../../../../tests/bench/turns.mjs';
import { contestantMakers } from './contestants.ts';
import { instance, isInPage } from './instance.ts';
import { paced } from './pace.ts';
import { type Contestant, isInJavaScript, javascriptOn, type Product, wgemmOn } from './product.ts';
import type { Report } from './report.ts';
import { inTurn } from './turn.ts';

/** What wgemm runs on here. */
export interface Facts {
  version: string;
  build: string;
  threads: number;
  why: string;
  /** The engine has no worker: it computes in the page itself. */
  isInPage: boolean;
  processors: number;
}

/** A product, and its speed by each contestant. */
export interface MeterFigures {
  id: string;
  /** GOP/s, or GB/s of a GEMV, by the name of the contestant. */
  figures: Record<string, number>;
}

const square = { m: 512, n: 512, k: 512, transA: false, transB: false };

/** The products, the one of the figure first. The page has their titles. */
const products: { id: string; product: Product }[] = [
  { id: 'float32', product: { ...square, dtype: 'float32' } },
  { id: 'int8', product: { ...square, dtype: 'int8' } },
  { id: 'bfloat16', product: { ...square, dtype: 'bfloat16' } },
  { id: 'gemv', product: { ...square, m: 1, n: 4096, k: 4096, dtype: 'float32' } },
];

/** Billions per second of operations, or of bytes that a GEMV reads. */
function speedOf({ m, n, k }: Product, ms: number): number {
  const work = m === 1 ? 4 * n * k : 2 * m * n * k;
  return work / ms / 1e6;
}

const timing = { warmUpMs: 150, warmUpCalls: 4, sampleMs: 12, minRounds: 6 };

/**
 * Plain JavaScript gets that many ms and calls, so that the engine has optimized it, and another
 * program has not had the processor in each call. It gets no more than `most` ms.
 */
const javascript = { least: 600, calls: 8, most: 2500 };

/** Resolves when the engine answers. */
export const hello = (): boolean => true;

export async function facts(): Promise<Facts> {
  const { info } = await instance();
  return {
    version: info.version,
    build: info.build,
    threads: info.threads,
    why: info.why,
    isInPage,
    processors: navigator.hardwareConcurrency,
  };
}

/** The speed of the product of the figure by wgemm, and on how many threads. */
export async function measureOwn(): Promise<{ speed: number; threads: number }> {
  const wg = await instance();
  const { product } = products[0]!;
  const ms = await inTurn(async () => {
    const contestant = wgemmOn(wg, product);
    try {
      const [time] = (await race([contestant], { ...timing, raceMs: 300 }))!;
      return time!.best;
    } finally {
      contestant.dispose();
    }
  });
  return { speed: speedOf(product, ms), threads: wg.info.threads };
}

/** The same by plain JavaScript. */
export async function measureJavaScript(): Promise<number> {
  const { product } = products[0]!;
  const ms = await inTurn(() => timeJavaScript(product, () => true));
  return speedOf(product, ms!); // nothing cancels it
}

/** ms of the fastest call. Undefined if it was cancelled. */
async function timeJavaScript(product: Product, goOn: () => boolean | Promise<boolean>) {
  const { run } = javascriptOn(product);
  let best = Infinity;
  const start = performance.now();
  let passed = 0;
  for (let calls = 0; passed < (calls < javascript.calls ? javascript.most : javascript.least);) {
    if (!(await goOn())) return undefined;
    best = Math.min(best, await timeOf(run, 1));
    passed = performance.now() - start;
    ++calls;
  }
  return best;
}

/** Measures each product, and reports it when it is done. Undefined if it was cancelled. */
export const measure = (report: Report<MeterFigures>): Promise<MeterFigures[] | undefined> =>
  inTurn(
    () => measureAll(report),
    () => report(0),
  );

async function measureAll(report: Report<MeterFigures>): Promise<MeterFigures[] | undefined> {
  const makes = await contestantMakers(await instance());
  const done: MeterFigures[] = [];
  for (const [i, { id, product }] of products.entries()) {
    const contestants: Contestant[] = [];
    const goOn = paced(report, () => (i + 0.5) / products.length);
    try {
      for (const make of makes) contestants.push(...[(await make(product)) ?? []].flat());
      const times = await race(contestants, {
        ...timing,
        raceMs: 300 * contestants.length,
        goOn,
      });
      if (!times) return undefined;
      const figures: Record<string, number> = {};
      contestants.forEach(({ name }, at) => {
        figures[name] = speedOf(product, times[at]!.best);
      });
      if (isInJavaScript(product)) {
        const ms = await timeJavaScript(product, goOn);
        if (ms === undefined) return undefined;
        figures.JavaScript = speedOf(product, ms);
      }
      done.push({ id, figures });
      if (!(await report((i + 1) / products.length, { id, figures }))) return undefined;
    } finally {
      for (const contestant of contestants) contestant.dispose();
    }
  }
  return done;
}
