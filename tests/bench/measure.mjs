// Measures a case: its contestants take turns, their results are compared, and its goals are
// checked.
import { toleranceOf } from './data.mjs';
import { race } from './turns.mjs';

/**
 * Returns the figures of one case. Compares the results of contestants that computed the same.
 */
export async function measure(problem, contestants, turns) {
  const { name, m, n, k, batch = 1 } = problem;
  const times = await race(contestants, turns);
  const [own, ...others] = contestants.filter(({ result }) => result);
  for (const other of others)
    checkEqual(
      own.result(),
      other.result(),
      toleranceOf(problem),
      `${name}: ${own.name} and ${other.name}`,
    );
  for (const { dispose } of contestants) await dispose?.();
  return {
    name,
    m,
    n,
    k,
    contestants: contestants.map(({ name, kind, operations = 2 * batch * m * n * k }, i) => ({
      name,
      kind,
      operations,
      ...times[i],
    })),
  };
}

function checkEqual(own, other, tolerance, who) {
  if (own.length !== other.length)
    throw new Error(`${who} give ${own.length} and ${other.length} elements`);
  own.forEach((value, i) => {
    const near = tolerance === 0 ? value === other[i] : Math.abs(value - other[i]) <= tolerance;
    if (!near) throw new Error(`${who} disagree at element ${i}: ${value} and ${other[i]}`);
  });
}

/** Whether a goal of cases.mjs is reached. */
export function judge({ of, than, atLeast, atMost }, { name, contestants }) {
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
  const [one, other] = [find(of), find(than)];
  const ratio = atLeast ? one.rate / other.rate : other.rate / one.rate;
  const reached = atLeast ? ratio >= atLeast : ratio <= atMost;
  // The most that is possible, on one thread, with the case's own build.
  const bounds = entrants.filter((each) => each.kind === 'bound' && each !== other);
  const bound =
    bounds.length > 0 && !/simd128|threads/.test(of) ? bounds[0].rate / other.rate : undefined;
  return {
    name,
    of: one.name,
    than: other.name,
    rates: [one.rate, other.rate],
    ratio,
    bound,
    atLeast,
    atMost,
    reached,
  };
}
