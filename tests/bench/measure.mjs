// Measures a case: its contestants take turns, their results are compared, and its goals are
// checked.
import { toleranceOf } from './data.mjs';
import { race } from './turns.mjs';

/**
 * Returns the figures of one case. Compares the results of contestants that computed the same.
 */
export async function measure(problem, contestants, turns) {
  const { name, m, n, k, batch = 1 } = problem;
  const { kernel } = contestants[0].plan?.() ?? {};
  let times;
  try {
    times = await race(contestants, turns);
    const [own, ...others] = contestants.filter(({ result }) => result);
    for (const other of others)
      checkEqual(
        own.result(),
        other.result(),
        other.tolerance ?? toleranceOf(problem),
        `${name}: ${own.name} and ${other.name}`,
      );
  } finally {
    for (const { dispose } of contestants) await dispose?.();
  }
  return {
    name,
    m,
    n,
    k,
    kernel,
    contestants: contestants.map(({ name, kind, operations = 2 * batch * m * n * k }, i) => ({
      name,
      kind,
      operations,
      ...times[i],
    })),
  };
}

/** Throws if two results differ by more than the tolerance. `who`: names them, for the message. */
export function checkEqual(own, other, tolerance, who) {
  if (own.length !== other.length)
    throw new Error(`${who} give ${own.length} and ${other.length} elements`);
  own.forEach((value, i) => {
    const near = tolerance === 0 ? value === other[i] : Math.abs(value - other[i]) <= tolerance;
    if (!near) throw new Error(`${who} disagree at element ${i}: ${value} and ${other[i]}`);
  });
}

// The share of a physical limit that reaches a goal.
const mostOfLimit = 0.95;

/** Whether a goal of cases.mjs is reached; undefined if the engine lacks one of its contestants. */
export function judge(goal, { name, kernel = '', contestants }) {
  const { of, than, atMost, limit, withDot } = goal;
  const entrants = contestants
    .map((each) => ({ ...each, rate: each.operations / each.best / 1e6 }))
    .sort((a, b) => a.rate - b.rate);
  const find = (who) => {
    if (who === 'the slowest') return entrants[0];
    if (who === 'the fastest') return entrants.at(-1);
    return entrants.findLast((each) =>
      who === 'peers' ? each.kind === 'peer' : each.name === who,
    );
  };
  const [one, other, bound] = [find(of), find(than), limit && find(limit)];
  if (!one || !other) return undefined;
  const hasDot = /_dot_(un)?signed/.test(kernel);
  const atLeast = hasDot ? (withDot ?? goal.atLeast) : goal.atLeast;
  const ratio = atLeast ? one.rate / other.rate : other.rate / one.rate;
  const share = bound && one.rate / bound.rate;
  const reached = (atLeast ? ratio >= atLeast : ratio <= atMost) || share >= mostOfLimit;
  return {
    name,
    of: one.name,
    than: other.name,
    rates: [one.rate, other.rate],
    ratio,
    limit,
    share,
    atLeast,
    atMost,
    reached,
  };
}
