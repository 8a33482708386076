/** The speed of some products here: the figure at the top, and the table. */
import { race } from '../../../../tests/bench/turns.mjs';
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
  const speed = await measureOne((product) => wgemmOn(wg, product), 300);
  return { speed, threads: wg.info.threads };
}

/** The same by plain JavaScript, for which a few timings suffice. */
export const measureJavaScript = (): Promise<number> => measureOne(javascriptOn, 0);

async function measureOne(make: (product: Product) => Contestant, raceMs: number) {
  const { product } = products[0]!;
  const speed = await inTurn(async () => {
    const contestant = make(product);
    try {
      const [time] = (await race([contestant], { ...timing, raceMs, minRounds: 3 }))!;
      return speedOf(product, time!.best);
    } finally {
      contestant.dispose();
    }
  });
  return speed!; // nothing cancels it
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
    try {
      for (const make of makes) contestants.push(...[(await make(product)) ?? []].flat());
      if (isInJavaScript(product)) contestants.push(javascriptOn(product));
      const times = await race(contestants, {
        ...timing,
        raceMs: 300 * contestants.length,
        goOn: paced(report, () => (i + 0.5) / products.length),
      });
      if (!times) return undefined;
      const figures: Record<string, number> = {};
      contestants.forEach(({ name }, at) => {
        figures[name] = speedOf(product, times[at]!.best);
      });
      done.push({ id, figures });
      if (!(await report((i + 1) / products.length, { id, figures }))) return undefined;
    } finally {
      for (const contestant of contestants) contestant.dispose();
    }
  }
  return done;
}
