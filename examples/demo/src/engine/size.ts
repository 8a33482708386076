/** Speed by size, and what wgemm would do for a size. */
import type { Explanation, Gemm } from 'wgemm';
import { race, timeOf } from '../../../../tests/bench/turns.mjs';
import { contestantMakers, type Make } from './contestants.ts';
import { instance, isInPage } from './instance.ts';
import { paced } from './pace.ts';
import {
  type Contestant,
  gemmTensors,
  isInJavaScript,
  javascriptOn,
  type Product,
  type ProductType,
  qgemmTensors,
} from './product.ts';
import type { Report } from './report.ts';
import { inTurn } from './turn.ts';

/** What wgemm would do: explain() takes the arguments of the call, and computes nothing. */
function explainGemm(wg: Gemm, product: Product, dtype: Exclude<ProductType, 'int8'>): Explanation {
  const { transA, transB } = product;
  const { a, b, out } = gemmTensors(wg, product, dtype);
  try {
    return wg.explain('gemm', a, b, null, { transA, transB, out });
  } finally {
    for (const tensor of [a, b, out]) tensor.dispose();
  }
}

function explainQGemm(wg: Gemm, product: Product): Explanation {
  const { transA, transB } = product;
  const { inputs, out } = qgemmTensors(wg, product);
  try {
    return wg.explain('qgemm', inputs, { transA, transB, out });
  } finally {
    for (const tensor of [inputs.a, inputs.b, out]) tensor.dispose();
  }
}

export async function explainSize(product: Product): Promise<Explanation> {
  const wg = await instance();
  return product.dtype === 'int8'
    ? explainQGemm(wg, product)
    : explainGemm(wg, product, product.dtype);
}

/** A size that the page wants to know about. */
export interface Size {
  /** Where it is on the curve: the size of the largest of the dimensions that move. */
  x: number;
  m: number;
  n: number;
  k: number;
  /** It is between two others, and left out if the machine is slow. */
  isFine: boolean;
}

export interface SizePoint extends Size {
  /** Milliseconds per call, by the name of the contestant. */
  ms: Record<string, number>;
  /** The same for those who would take too long, as estimated. */
  tooLong: Record<string, number>;
}

export interface SizeUpdate {
  point?: SizePoint;
  /** Another measurement is running. */
  isWaiting?: boolean;
  /** Two contestants disagree, or one failed. */
  problem?: string;
}

type Kind = Pick<Product, 'dtype' | 'transA' | 'transB'>;

/**
 * ms of a call, at most. The first size is the one that the visitor has chosen. In the page itself,
 * calls must be short, so that the page responds.
 */
const longest = isInPage ? { usual: 25, first: 25 } : { usual: 500, first: 1000 };
const longestInJavaScript = isInPage ? 25 : 100;

/** ms after which no fine size is measured, and no size at all. */
const budget = { fine: 2200, all: 2900 };

/** Calls below this number of ms are timed in turns, several times. Others are timed alone. */
const quick = 25;

/** ms after which threads that spin have gone to sleep. */
const spinMs = 20;

/** What is known of the speed of each contestant: products, and ms per call. */
const known = new Map<string, { work: number; ms: number }[]>();

const workOf = ({ m, n, k }: Pick<Product, 'm' | 'n' | 'k'>) => 2 * m * n * k;

/**
 * Measures each size, and reports it when it is done.
 *
 * @returns whether it came to the end; false if it was cancelled
 */
export async function sweepSizes(
  kind: Kind,
  sizes: Size[],
  report: Report<SizeUpdate>,
): Promise<boolean> {
  const wg = await instance().catch(() => undefined); // the page has said why
  const makes = await makesOf(kind, wg);
  const sweep = async () => {
    const start = performance.now();
    const passed = () => performance.now() - start;
    const points: SizePoint[] = [];
    for (const [i, size] of sizes.entries()) {
      if (i > 0 && passed() > (size.isFine ? budget.fine : budget.all)) continue;
      const limit = i === 0 ? longest.first : longest.usual;
      const update = await measure(
        { ...kind, ...size },
        size,
        makes,
        limit,
        report,
        i / sizes.length,
      );
      if (!update || !(await report((i + 1) / sizes.length, update))) return false;
      points.push(update.point);
    }
    // In what time is left, sizes are timed again, and the best counts.
    for (const [i, point] of points.entries()) {
      if (passed() > budget.all) break;
      const update = await measure({ ...kind, ...point }, point, makes, longest.usual, report, 1);
      if (!update) return false;
      for (const [name, ms] of Object.entries(point.ms))
        update.point.ms[name] = Math.min(ms, update.point.ms[name] ?? ms);
      points[i] = update.point;
      if (!(await report(1, update))) return false;
    }
    return true;
  };
  if (!(await report(0))) return false;
  return (await inTurn(sweep, () => report(0, { isWaiting: true }))) ?? false;
}

/** wgemm, plain JavaScript if it has the type, and the peers. */
async function makesOf(kind: Kind, wg: Gemm | undefined): Promise<Make[]> {
  const makes = await contestantMakers(wg);
  if (isInJavaScript(kind))
    makes.splice(wg ? 1 : 0, 0, (product) => Promise.resolve(javascriptOn(product)));
  return makes;
}

/** One size; undefined if the visitor has cancelled. */
async function measure(
  product: Product,
  size: Size,
  makes: Make[],
  limit: number,
  report: Report<SizeUpdate>,
  fraction: number,
): Promise<(SizeUpdate & { point: SizePoint }) | undefined> {
  const goOn = paced(report, () => fraction);
  const point: SizePoint = { ...size, ms: {}, tooLong: {} };
  const problems: string[] = [];
  const fast: Contestant[] = [];
  const slow: (Contestant & { perCall: number })[] = [];
  try {
    for (const make of makes) {
      try {
        const estimated = await estimate(make, product, goOn);
        if (!estimated) return undefined;
        const { name, perCall } = estimated;
        if (perCall > (name === 'JavaScript' ? longestInJavaScript : limit)) {
          point.tooLong[name] = perCall;
          continue;
        }
        const contestant = name && (await make(product));
        if (!contestant) continue;
        if (perCall < quick) fast.push(contestant);
        else slow.push({ ...contestant, perCall });
      } catch (error) {
        problems.push(`A product cannot be computed: ${(error as Error).message}`);
      }
      if (!(await goOn())) return undefined;
    }
    clock ??= resolutionOfClock();
    // Threads that spin after a call would take processors from the others.
    const spinning = fast.filter(({ spins }) => spins);
    for (const group of [fast.filter(({ spins }) => !spins), spinning]) {
      const times = await race(group, budgetOf(group.length, clock, goOn));
      if (!times) return undefined;
      group.forEach(({ name }, i) => (point.ms[name] = times[i]!.best));
    }
    if (spinning.length > 0) await new Promise((resolve) => setTimeout(resolve, spinMs));
    for (const { name, run, perCall } of slow) {
      if (!(await goOn())) return undefined;
      const first = await timeOf(run, 1);
      if (!(await goOn())) return undefined;
      // A long call is timed once, unless its code was cold or the machine busy.
      const isEnough = first > 4 * quick && first <= 2 * perCall;
      point.ms[name] = isEnough ? first : Math.min(first, await timeOf(run, 1));
    }
    for (const [name, ms] of Object.entries(point.ms)) learn(name, product, ms);
    problems.push(...(await disagreements(product, [...fast, ...slow])));
  } finally {
    for (const contestant of [...fast, ...slow]) contestant.dispose();
  }
  return problems.length > 0 ? { point, problem: problems.join(' ') } : { point };
}

/** Short timings, but long enough for the clock. */
function budgetOf(count: number, clock: number, goOn: () => Promise<boolean>) {
  const sampleMs = Math.min(Math.max(2, 15 * clock), 25);
  return {
    warmUpMs: clock < 0.5 ? 8 : 30,
    warmUpCalls: 3,
    sampleMs,
    raceMs: Math.max(Math.min(20 * count, 45), 2 * sampleMs),
    minRounds: 3,
    goOn,
  };
}

let clock: number | undefined;

/** ms between two times that the clock tells: up to 1 in a page that is not isolated. */
function resolutionOfClock(): number {
  let least = Infinity;
  for (let i = 0; i < 4; ++i) {
    const before = performance.now();
    let after = before;
    while (after === before) after = performance.now();
    least = Math.min(least, after - before);
  }
  return least;
}

// --- estimates -----------------------------------------------------------------------------------

const keyOf = (name: string, { dtype, transA, transB }: Kind) =>
  `${name} ${dtype} ${Number(transA)}${Number(transB)}`;

function learn(name: string, product: Product, ms: number): void {
  const key = keyOf(name, product);
  const before = known.get(key) ?? [];
  known.set(key, [{ work: workOf(product), ms }, ...before].slice(0, 64));
}

/** Names of contestants, by what makes them: they are the same for all products. */
const names = new WeakMap<Make, string>();

/**
 * How long a call would take, from the product with the most similar work. The first time, that is
 * a small product, which is computed until the engine has compiled the code well.
 */
async function estimate(
  make: Make,
  product: Product,
  goOn: () => Promise<boolean>,
): Promise<{ name: string; perCall: number } | undefined> {
  let name = names.get(make);
  if (name === undefined || (name && !known.has(keyOf(name, product)))) {
    const [m, n, k] = [product.m, product.n, product.k].map((size) => Math.min(size, 96));
    const small = { ...product, m: m!, n: n!, k: k! };
    const contestant = await make(small);
    name = contestant?.name ?? '';
    names.set(make, name);
    if (contestant && !known.has(keyOf(name, product))) {
      try {
        const perCall = await warmUp(contestant, goOn);
        if (perCall === undefined) return undefined;
        learn(name, small, perCall);
      } finally {
        contestant.dispose();
      }
    } else contestant?.dispose();
  }
  if (!name) return { name, perCall: 0 };
  const work = workOf(product);
  const distance = (other: number) => Math.abs(Math.log(other / work));
  const nearest = known
    .get(keyOf(name, product))!
    .reduce((a, b) => (distance(b.work) < distance(a.work) ? b : a));
  return { name, perCall: (nearest.ms * work) / nearest.work };
}

/** @returns ms per call once the code is warm; undefined if the visitor has cancelled */
async function warmUp({ run }: Contestant, goOn: () => Promise<boolean>) {
  let perCall = 0;
  for (const part of [60, 30]) {
    const start = performance.now();
    let [calls, passed] = [0, 0];
    for (; passed < part; ++calls, passed = performance.now() - start) {
      if (!(await goOn())) return undefined;
      await run(1);
    }
    perCall = passed / calls;
  }
  return perCall;
}

// --- agreement -----------------------------------------------------------------------------------

/** Contestants whose results differ from the first one's by more than rounding. */
async function disagreements(product: Product, contestants: Contestant[]): Promise<string[]> {
  const [own, ...others] = contestants;
  if (!own) return [];
  const expected = await own.first();
  const found: string[] = [];
  for (const other of others) {
    const result = await other.first();
    if (!(Math.abs(result - expected) <= toleranceOf(product)))
      found.push(
        `${other.name} and ${own.name} disagree for ${product.m} x ${product.n} x ${product.k}: ` +
          `${result} and ${expected}.`,
      );
  }
  return found;
}

/** Bound of the rounding of a sum: K times the largest term times the distance of two numbers. */
function toleranceOf({ k, dtype }: Product): number {
  if (dtype === 'int32' || dtype === 'int64') return 0;
  const largest = dtype === 'int8' ? 128 * 100 : 0.25;
  return k * largest * (dtype === 'float64' ? 2 ** -51 : 2 ** -22);
}
