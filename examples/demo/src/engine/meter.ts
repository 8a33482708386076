/** The meter: how fast some products are here. */
import { race } from '../../../../tests/bench/turns.mjs';
import { contestantMakers } from './contestants.ts';
import { instance, isInPage } from './instance.ts';
import { paced } from './pace.ts';
import type { Contestant, Product } from './product.ts';
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

export interface MeterRow {
  id: string;
  title: string;
  unit: 'GOP/s' | 'GB/s';
  /** By the name of the contestant, in the order of the columns. */
  figures: Record<string, number>;
}

const square = { m: 512, n: 512, k: 512, transA: false, transB: false };

/** The products, the largest figure of the page first. */
const rows: { id: string; title: string; product: Product }[] = [
  { id: 'float32', title: 'float32, 512 x 512 x 512', product: { ...square, dtype: 'float32' } },
  { id: 'int8', title: 'uint8 x int8, 512 x 512 x 512', product: { ...square, dtype: 'int8' } },
  { id: 'bfloat16', title: 'bfloat16, 512 x 512 x 512', product: { ...square, dtype: 'bfloat16' } },
  {
    id: 'gemv',
    title: 'float32 GEMV, 1 x 4096 x 4096',
    product: { ...square, m: 1, n: 4096, k: 4096, dtype: 'float32' },
  },
];

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

/** Measures each row, and reports it when it is done. Undefined if it was cancelled. */
export const measure = (report: Report<MeterRow>): Promise<MeterRow[] | undefined> =>
  inTurn(
    () => measureRows(report),
    () => report(0),
  );

async function measureRows(report: Report<MeterRow>): Promise<MeterRow[] | undefined> {
  const makes = await contestantMakers(await instance());
  const done: MeterRow[] = [];
  for (const [i, { id, title, product }] of rows.entries()) {
    const contestants: Contestant[] = [];
    try {
      for (const make of makes) contestants.push(...[(await make(product)) ?? []].flat());
      const times = await race(contestants, {
        warmUpMs: 150,
        warmUpCalls: 4,
        sampleMs: 12,
        raceMs: 300 * contestants.length,
        minRounds: 6,
        goOn: paced(report, () => (i + 0.5) / rows.length),
      });
      if (!times) return undefined;
      const isGemv = product.m === 1;
      const work = isGemv ? 4 * product.n * product.k : 2 * product.m * product.n * product.k;
      const row: MeterRow = { id, title, unit: isGemv ? 'GB/s' : 'GOP/s', figures: {} };
      contestants.forEach(({ name }, at) => {
        row.figures[name] = work / times[at]!.best / 1e6;
      });
      done.push(row);
      if (!(await report((i + 1) / rows.length, row))) return undefined;
    } finally {
      for (const contestant of contestants) contestant.dispose();
    }
  }
  return done;
}
