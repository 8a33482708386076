// Writes the file of a run, and compares two runs.
import { readFileSync } from 'node:fs';
import { fail } from '../../scripts/run.mjs';

const worse = 1.05;

/** @param option how the user named the file */
export function readResults(file, option) {
  let results;
  try {
    results = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    fail(`bench: ${option} ${file} cannot be read: ${error.message}`);
  }
  if (!Array.isArray(results?.cases))
    fail(`bench: ${option} ${file} is not a file that the bench wrote: it has no cases`);
  return results;
}

/**
 * How the time of each form of wgemm changed, the largest change first. The other contestants show
 * how the machine changed.
 */
export function printComparison(old, now) {
  const before = new Map(
    old.cases.flatMap((each) =>
      each.contestants.map(({ name, best }) => [`${each.name}: ${name}`, best]),
    ),
  );
  const changes = now.cases
    .flatMap((each) =>
      each.contestants.map(({ name, kind, best }) => ({
        who: `${each.name}: ${name}`,
        kind,
        best,
      })),
    )
    .filter(({ who }) => before.has(who))
    .map((each) => ({ ...each, ratio: each.best / before.get(each.who) }));
  console.log(`\nTime of each next to the run of ${old.date}:`);
  for (const what of ['processor', 'engine', 'threads']) {
    const [was, is] = [old, now].map((run) => textOf(run[what]));
    if (was !== is) console.log(`  it had another ${what}: ${was}, now ${is}`);
  }
  const own = changes
    .filter(({ kind }) => kind === 'own')
    .sort((a, b) => Math.abs(Math.log(b.ratio)) - Math.abs(Math.log(a.ratio)));
  if (own.length === 0) return console.log('  no case is in both');
  const width = Math.max(...own.map(({ who }) => who.length)) + 2;
  for (const { who, ratio } of own)
    console.log(`  ${who.padEnd(width)}${percent(ratio)}${ratio > worse ? '   SLOWER' : ''}`);
  const others = changes.filter(({ kind }) => kind !== 'own').sort((a, b) => a.ratio - b.ratio);
  if (others.length > 0) {
    const middle = others[others.length >> 1].ratio;
    console.log(
      `  the peers' times changed by ${percent(middle).trim()} in the middle, from ` +
        `${percent(others[0].ratio).trim()} to ${percent(others.at(-1).ratio).trim()}: that is ` +
        'the machine',
    );
  }
}

const textOf = (fact) => (fact?.name ? `${fact.name} ${fact.version}` : String(fact));

function percent(ratio) {
  const change = (ratio - 1) * 100;
  return `${change < 0 ? '' : '+'}${change.toFixed(1)}%`.padStart(8);
}
