// Prints a run on the terminal.
import { cases, sizeOf } from './cases.mjs';

const nameWidth = Math.max(...cases.map(({ name }) => name.length)) + 2;
const libraryWidth = 30;

/** Such as 'one thread', or '2 threads'. */
export const threadsText = (threads) => (threads === 1 ? 'one thread' : `${threads} threads`);

export function duration(ms) {
  return ms < 0.1 ? `${(ms * 1000).toFixed(2)} us` : `${ms.toFixed(2)} ms`;
}

/** How much of the speed of `fast` the slower one loses, by the best times. */
export function lossText({ fast, strict }) {
  return `${Math.round(100 * Math.max(0, 1 - fast.best / strict.best))}%`;
}

const rateOf = ({ operations, best }) => operations / best / 1e6;
const speed = (contestant) => rateOf(contestant).toFixed(1);

function printRow(name, library, ...columns) {
  console.log(
    `${name.padEnd(nameWidth)}${library.padEnd(libraryWidth)}` +
      columns.map((text) => text.padStart(11)).join(''),
  );
}

export function printCaseHead() {
  console.log(
    '\nM x N x K; GOP/s counts 2*M*N*K; ratios compare the best times; wgemm reads and ' +
      'writes tensors in its heap\n',
  );
  printRow('case', 'library', 'GOP/s best', 'median', 'time best', 'median');
}

export function printCase({ name, contestants }) {
  contestants.forEach((each, i) => {
    const { best, median } = each;
    // A bound runs another product, so its time means nothing here.
    const times = each.kind === 'bound' ? [] : [duration(best), duration(median)];
    printRow(
      i === 0 ? name : '',
      each.name,
      speed(each),
      speed({ ...each, best: median }),
      ...times,
    );
  });
}

const printColumns = (model, variant, ...columns) =>
  console.log(
    `${model.padEnd(38)}${variant.padEnd(9)}${columns.map((text) => text.padStart(12)).join('')}`,
  );

export function printModelHead() {
  console.log(
    '\ntime of a run, or of all runs if the row names a number of runs; a ratio is how many ' +
      'times as fast wgemm is, by the medians and by the best times\n',
  );
  printColumns('', '', 'wgemm', '', 'ORT', '', 'ratio');
  const times = ['median', 'best'];
  printColumns('model', 'variant', ...times, ...times, ...times);
}

export function printModel({ model, variant, contestants: [own, peer], products }) {
  const times = [own, peer].flatMap(({ median, best }) => [duration(median), duration(best)]);
  const ratios = [peer.median / own.median, peer.best / own.best].map((ratio) => ratio.toFixed(2));
  printColumns(model, variant, ...times, ...ratios);
  if (products) {
    const { step, products: sum } = products;
    const speed = `${(1000 / own.median).toFixed(0)} tokens per second`;
    const ratio = (step / sum).toFixed(2);
    console.log(`  ${speed}; ${ratio} times its products, each on its own: ${duration(sum)}`);
  }
}

/** One line per size, with the names of the columns if these change. */
export function printSweep({ name, m, n, k, contestants }, before) {
  const columns = contestants.map((each) => each.name);
  const row = (first, cells) =>
    console.log(`${first.padEnd(17)}${cells.map((cell) => cell.padStart(18)).join('')}`);
  if (String(columns) !== String(before?.contestants.map((each) => each.name))) {
    console.log(`\n${name.replace(/ [^ ]*$/, '')}, GOP/s by the best time`);
    row('M x N x K', columns);
  }
  row(sizeOf({ m, n, k }), contestants.map(speed));
}

export function printLimits({ contestants }) {
  console.log(
    `\nlimit of one core, in registers: ` +
      `${contestants.map((each) => `${each.name} ${speed(each)}`).join('; ')} GOP/s`,
  );
}

/** @param goals of one cliff, judged */
export function printCliff(goals, { targets, isFirst }) {
  if (isFirst) console.log('\ncliffs: the worst size of each, and all that miss');
  for (const { name, of, than, ratio, reached } of goals) {
    console.log(
      `${name.padEnd(32)} ${`${of} next to ${than}`.padEnd(28)} ` +
        `${ratio.toFixed(3)}${reached || !targets ? '' : '   MISSED'}`,
    );
  }
}

/**
 * @param goals of cases of the table, or of cliffs: { name, of, than, ratio, atLeast or atMost,
 * rates?, limit?, share? }
 */
export function printGoals(goals) {
  if (goals.length === 0) return;
  const rows = goals.map(({ name, of, than, rates, ratio, limit, share, ...goal }) => [
    name,
    rates ? `${of} ${rates[0].toFixed(1)}` : of,
    rates ? `${than} ${rates[1].toFixed(1)}` : than,
    `${ratio.toFixed(2)}x`,
    goal.atLeast ? `at least ${goal.atLeast}` : `at most ${goal.atMost}`,
    limit ? `${(share * 100).toFixed(0)}% of ${limit}` : '',
    goal.reached ? 'reached' : 'MISSED',
  ]);
  rows.unshift(['case', 'figure', 'next to', 'ratio', 'target', 'or 95%', '']);
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)) + 2);
  console.log(
    '\nTargets; figures are GOP/s by the best time; a ratio that must be small compares times; a ' +
      'target is reached by its ratio, or by 95% of the physical limit next to it\n',
  );
  for (const row of rows)
    console.log(
      row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('')
        .trimEnd(),
    );
  console.log(`\n${goals.filter(({ reached }) => reached).length} of ${goals.length} reached`);
}
