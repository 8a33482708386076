// The rows of a random run: their groups, as a table and as figures that are judged.
import { duration } from './print.mjs';

// Less than 1 by the noise of a run.
export const lost = 0.97;
const leastMedian = 2.3; // in the heap

const inHeap = (rows) => rows.filter((row) => !row.arrays);

/**
 * The rows by type, and all of them: { kind, arrays } with figures. These are `shapes`, `worst`,
 * `median`, `lost` (how many ratios are below the constant), and `slower` (how many are below 1).
 */
export function groupsOf(rows) {
  const kinds = [...new Set(rows.map(({ kind }) => kind))].sort();
  return [...kinds, 'all']
    .flatMap((kind) =>
      [false, true].map((arrays) => ({
        kind,
        arrays,
        ratios: rows
          .filter((row) => (kind === 'all' || row.kind === kind) && row.arrays === arrays)
          .map(({ ratio }) => ratio)
          .sort((a, b) => a - b),
      })),
    )
    .filter(({ ratios }) => ratios.length > 0)
    .map(({ ratios, ...group }) => ({
      ...group,
      shapes: ratios.length,
      worst: ratios[0],
      median: ratios[ratios.length >> 1],
      lost: ratios.filter((ratio) => ratio < lost).length,
      slower: ratios.filter((ratio) => ratio < 1).length,
    }));
}

/** Prints the losses first. */
export function printRows(rows) {
  const slower = rows.filter(({ ratio }) => ratio < 1).sort((a, b) => a.ratio - b.ratio);
  console.log(
    `\nratio: the time of the fastest peer by the time of wgemm; slower, the worst first:`,
  );
  const width = Math.max(4, ...slower.map(({ name }) => name.length)) + 2;
  for (const { name, ratio, best, peer, bestOfPeer, kernel } of slower) {
    console.log(
      `  ${ratio.toFixed(2)}  ${name.padEnd(width)}${duration(best).padStart(10)}  ` +
        `${peer} ${duration(bestOfPeer)}  ${kernel}`,
    );
  }
  console.log(`\n${'type, operands'.padEnd(28)}shapes   worst  median  below ${lost}   below 1`);
  for (const group of groupsOf(rows)) {
    const { kind, arrays, shapes, worst, median } = group;
    const cells = [
      [String(shapes), 6],
      [worst.toFixed(2), 8],
      [median.toFixed(2), 8],
      [String(group.lost), 12],
      [String(group.slower), 10],
    ];
    console.log(
      `${kind}${arrays ? ', arrays' : ''}`.padEnd(28) +
        cells.map(([text, wide]) => text.padStart(wide)).join(''),
    );
  }
}

export function judgeRows(rows) {
  const ratiosOf = (of) => of.map(({ ratio }) => ratio).sort((a, b) => a - b);
  const [worst] = ratiosOf(rows);
  const heap = ratiosOf(inHeap(rows)),
    median = heap[heap.length >> 1];
  const goals = [
    ['the worst ratio', worst, lost],
    ['the median in the heap', median, leastMedian],
  ];
  console.log('');
  for (const [what, is, atLeast] of goals) {
    console.log(
      `${what} is ${is.toFixed(2)}; target: at least ${atLeast}: ` +
        (is >= atLeast ? 'reached' : 'MISSED'),
    );
  }
}
