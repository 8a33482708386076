// npm run bench -- --accuracy: how far results are from exact ones, by operation and type, on
// seeded problems. Products in floating point run in the default build, in simd128 and in strict
// mode. The run fails if an error is larger than its bound, or if a result that must be the same
// everywhere differs. Then it races fast and strict mode.
import { createGemm } from 'wgemm';
import { fail } from '../../scripts/run.mjs';
import { attentionRows } from './accuracy/attention.mjs';
import { raceModes } from './accuracy/cost.mjs';
import { operatorRows } from './accuracy/operators.mjs';
import { peerRows, startPeers } from './accuracy/peers.mjs';
import { productRows } from './accuracy/products.mjs';
import { quantizedRows } from './accuracy/quantized.mjs';
import { searchRows } from './accuracy/search.mjs';

/** Options of createGemm by name. Both builds must have the same bits in strict mode. */
const modes = {
  relaxed: { simd: 'relaxed' },
  simd128: { simd: 'simd128' },
  strict: { simd: 'relaxed', determinism: 'strict' },
  'strict simd128': { simd: 'simd128', determinism: 'strict' },
};
const shown = ['relaxed', 'simd128', 'strict'];

/** Tables whose results may differ between modes. */
const differ = new Set(['products', 'halves', 'weights', 'attention', 'peers']);

const rows = [
  ...productRows,
  ...peerRows,
  ...quantizedRows,
  ...attentionRows,
  ...searchRows,
  ...operatorRows,
];

const nameOf = ({ table, name, dtype, k }) =>
  [table, name, dtype, k !== undefined && `K ${k}`].filter(Boolean).join(', ');

/** The largest error and the sum of all. */
class Errors {
  most = 0;
  sum = 0;
  count = 0;

  add(error) {
    if (!(error <= this.most)) this.most = error; // NaN stays
    this.sum += error;
    this.count += 1;
  }

  /** Three digits. */
  get figures() {
    return [this.most, this.sum / this.count].map((value) => Number(value.toPrecision(3)));
  }
}

/** Fails if results that must be the same differ. */
function checkSame(row, found) {
  const isSame = (one, other) => found[one].every((value, i) => Object.is(value, found[other][i]));
  if (!isSame('strict', 'strict simd128'))
    fail(`bench: ${nameOf(row)}: the builds differ in strict mode`);
  if (!differ.has(row.table) && !['relaxed', 'simd128'].every((each) => isSame(each, 'strict')))
    fail(`bench: ${nameOf(row)}: its results differ between modes`);
}

/** Measures a row on all instances, and on the peers. */
async function measureRow(row, instances, peers) {
  const errors = {};
  let bound = row.bound ?? Infinity;
  const add = (who, y, errorAt) => {
    errors[who] ??= new Errors();
    for (let i = 0; i < y.length; ++i) errors[who].add(errorAt(i, y[i]));
  };
  for (const problem of row.problems()) {
    bound = Math.min(bound, problem.bound ?? Infinity);
    const found = {};
    for (const mode of Object.keys(modes)) found[mode] = await problem.run(instances[mode]);
    checkSame(row, found);
    for (const mode of differ.has(row.table) ? shown : ['strict'])
      add(differ.has(row.table) ? mode : 'all', found[mode], problem.errorAt);
    for (const [peer, run] of Object.entries((row.table === 'peers' && peers?.run) || {}))
      add(peer, await run(problem), problem.errorAt);
  }
  const { table, name, dtype, unit, k } = row;
  return {
    ...{ table, name, dtype, unit, k },
    ...(bound < Infinity && { bound: Number(bound.toPrecision(4)) }),
    errors: Object.fromEntries(Object.entries(errors).map(([who, { figures }]) => [who, figures])),
  };
}

function printRow(row) {
  const texts = Object.entries(row.errors).map(([who, [most, mean]]) => `${who} ${most} (${mean})`);
  const { bound, unit } = row;
  console.log(
    `${nameOf(row).padEnd(50)} ${texts.join(', ')}` +
      `${unit ? ` ${unit}` : ''}${bound ? `; bound ${bound}` : ''}`,
  );
}

/**
 * Measures each row whose name contains the filter.
 *
 * @returns { versions, rows, cost }
 */
export async function measureAccuracy({ threads, filter }) {
  const chosen = rows.filter((row) => nameOf(row).includes(filter));
  const instances = {};
  for (const [name, options] of Object.entries(modes))
    instances[name] = await createGemm({ ...options, threads, models: true });
  const versions = { wgemm: instances.strict.info.version };
  const peers = chosen.some(({ table }) => table === 'peers') ? await startPeers() : undefined;
  const measured = [];
  const beyond = [];
  if (chosen.length > 0) console.log('the largest error (the mean error)');
  for (const row of chosen) {
    const found = await measureRow(row, instances, peers);
    printRow(found);
    measured.push(found);
    const { bound = Infinity, errors } = found;
    if (!Object.values(errors).every(([most]) => most <= bound)) beyond.push(nameOf(found));
  }
  for (const each of Object.values(instances)) each.dispose();
  if (beyond.length > 0) fail(`bench: beyond their bounds: ${beyond.join('; ')}`);
  const cost = await raceModes({ threads, filter });
  if (measured.length + cost.length === 0)
    fail(
      `bench: no row contains "${filter}"; there are ` +
        `${[...new Set(rows.map(({ table }) => table))].join(', ')} and cost`,
    );
  return { versions: { ...versions, ...peers?.versions }, rows: measured, cost };
}
