/** The plan of wgemm, as a picture and in words. */
import type { Explanation } from 'wgemm';
import type { Product } from '../engine/product.ts';
import { draw, make } from '../page/dom.ts';
import { bytes, whole } from '../page/format.ts';

// --- what is multiplied --------------------------------------------------------------------------

/** The product that is computed: perhaps the transpose of the one that was asked for. */
interface Computed {
  first: string;
  second: string;
  result: string;
  /** Rows and columns of the result, and the elements in each sum. */
  rows: number;
  columns: number;
  depth: number;
}

/** Names say how each operand is used: a transpose of what the caller has, or not. */
function computedOf({ transposed, m, n, k }: Explanation, { transA, transB }: Product): Computed {
  const [a, b] = [transA !== transposed ? 'A\u1d40' : 'A', transB !== transposed ? 'B\u1d40' : 'B'];
  return transposed
    ? { first: b, second: a, result: 'C\u1d40', rows: n, columns: m, depth: k }
    : { first: a, second: b, result: 'C', rows: m, columns: n, depth: k };
}

// --- the picture ---------------------------------------------------------------------------------

/** Sides of rectangles differ by this factor at most: beyond it, the picture is not to scale. */
const extreme = 12;

interface Span {
  start: number;
  length: number;
}

/** The middle one of the parts of a side, in pixels, and not less than a visible size. */
function middle(side: Span, total: number, part: number, least: number): Span & { size: number } {
  const size = Math.min(part, total);
  const index = Math.floor((Math.ceil(total / size) - 1) / 2);
  const exact = Math.min(size, total - index * size);
  const length = Math.min(Math.max((side.length * exact) / total, least), side.length);
  const start = side.start + (side.length * index * size) / total;
  return { start: Math.min(start, side.start + side.length - length), length, size: exact };
}

/** The picture, and whether its rectangles have the proportions of the matrices. */
export function pictureOf(
  plan: Explanation,
  product: Product,
  width: number,
): { svg: SVGSVGElement; isToScale: boolean } {
  const { first, second, result, rows, columns, depth } = computedOf(plan, product);
  const [mr, nr] = plan.tile;
  const [mc, nc, kc] = plan.blocks;
  const gap = 34;
  const [top, bottom, side] = [24, 26, 6];

  const longest = Math.max(rows, columns, depth);
  const spread = longest / Math.min(rows, columns, depth);
  const isToScale = spread <= extreme;
  const power = isToScale ? 1 : Math.log(extreme) / Math.log(spread);
  const relative = (size: number) => (size / longest) ** power;
  const scale = Math.min(
    (width - gap - 2 * side) / (relative(depth) + relative(columns)),
    (430 - gap - top - bottom) / (relative(depth) + relative(rows)),
  );
  const pixels = (size: number) => scale * relative(size);
  const used = pixels(depth) + gap + pixels(columns);
  const height = top + pixels(depth) + gap + pixels(rows) + bottom;

  // The sides that matrices share.
  const across: Span = { start: (width - used) / 2, length: pixels(depth) };
  const right: Span = { start: across.start + across.length + gap, length: pixels(columns) };
  const above: Span = { start: top, length: pixels(depth) };
  const below: Span = { start: top + above.length + gap, length: pixels(rows) };

  // The blocks: one in the middle of each side. In it, one tile, and what its sums run over.
  const blockRows = middle(below, rows, mc, 6);
  const blockColumns = middle(right, columns, nc, 6);
  const blockAcross = middle(across, depth, kc, 6);
  const blockAbove = middle(above, depth, kc, 6);
  const tileRows = middle(blockRows, blockRows.size, mr, 4);
  const tileColumns = middle(blockColumns, blockColumns.size, nr, 4);

  const rect = (x: Span, y: Span, kind: string, more: Record<string, string | number> = {}) =>
    draw('rect', {
      x: x.start,
      y: y.start,
      width: x.length,
      height: y.length,
      class: `plan-${kind}`,
      ...more,
    });
  const svg = draw('svg', {
    viewBox: `0 0 ${width} ${height.toFixed(1)}`,
    role: 'img',
    id: 'size-plan',
    'aria-label': sentenceOf(plan, product),
  });
  svg.append(hatches());
  svg.append(
    rect(across, below, 'matrix'),
    rect(right, above, 'matrix'),
    rect(right, below, 'matrix'),
    ...cuts(across, depth, kc, below, 'x'),
    ...cuts(below, rows, mc, across, 'y'),
    ...cuts(right, columns, nc, above, 'x'),
    ...cuts(above, depth, kc, right, 'y'),
    ...cuts(right, columns, nc, below, 'x'),
    ...cuts(below, rows, mc, right, 'y'),
    rect(blockAcross, blockRows, 'block plan-a'),
    rect(blockColumns, blockAbove, 'block plan-b'),
    rect(blockColumns, blockRows, 'block plan-c'),
  );
  if (plan.packs.a)
    svg.append(rect(blockAcross, blockRows, 'hatch', { fill: 'url(#size-hatch-a)' }));
  if (plan.packs.b)
    svg.append(rect(blockColumns, blockAbove, 'hatch', { fill: 'url(#size-hatch-b)' }));
  const line = (x1: number, y1: number, x2: number, y2: number) =>
    draw('line', { x1, y1, x2, y2, class: 'plan-guide' });
  const [tileTop, tileEnd] = [tileRows.start, tileRows.start + tileRows.length];
  const [tileLeft, tileRight] = [tileColumns.start, tileColumns.start + tileColumns.length];
  const [endAcross, endAbove] = [blockAcross, blockAbove].map((s) => s.start + s.length);
  svg.append(
    line(endAcross!, tileTop, tileLeft, tileTop),
    line(endAcross!, tileEnd, tileLeft, tileEnd),
    line(tileLeft, endAbove!, tileLeft, tileTop),
    line(tileRight, endAbove!, tileRight, tileTop),
    rect(blockAcross, tileRows, 'panel plan-a'),
    rect(tileColumns, blockAbove, 'panel plan-b'),
    rect(tileColumns, tileRows, 'tile'),
  );
  const label = (x: Span, y: number, name: string, high: number, wide: number) => {
    const text = `${high} x ${wide}`;
    const isLong = 8 * (name.length + text.length + 1) > width - x.start;
    const element = draw('text', {
      x: isLong ? x.start + x.length : x.start,
      y,
      'text-anchor': isLong ? 'end' : 'start',
      class: 'plan-label',
    });
    element.append(draw('tspan', { class: 'plan-name' }, name), ` ${text}`);
    return element;
  };
  svg.append(
    label(across, below.start - 9, first, rows, depth),
    label(right, top - 9, second, depth, columns),
    label(right, height - 8, result, rows, columns),
  );
  return { svg, isToScale };
}

/** Lines between blocks, if they are not too many to see. */
function cuts(along: Span, total: number, part: number, over: Span, axis: 'x' | 'y'): SVGElement[] {
  const count = Math.ceil(total / part);
  if (count < 2 || along.length / count < 5) return [];
  return Array.from({ length: count - 1 }, (_, i) => {
    const at = along.start + (along.length * (i + 1) * part) / total;
    const [from, to] = [over.start, over.start + over.length];
    return axis === 'x'
      ? draw('line', { x1: at, x2: at, y1: from, y2: to, class: 'plan-cut' })
      : draw('line', { y1: at, y2: at, x1: from, x2: to, class: 'plan-cut' });
  });
}

function hatches(): SVGElement {
  const defs = draw('defs', {});
  for (const operand of ['a', 'b']) {
    const pattern = draw('pattern', {
      id: `size-hatch-${operand}`,
      width: '7',
      height: '7',
      patternUnits: 'userSpaceOnUse',
      patternTransform: `rotate(${operand === 'a' ? 45 : -45})`,
    });
    const attributes = { x1: '0', x2: '0', y1: '0', y2: '7', class: `plan-stripe plan-${operand}` };
    pattern.append(draw('line', attributes));
    defs.append(pattern);
  }
  return defs;
}

/** The legend: a sample of each mark and what it stands for. */
export function legendOf(plan: Explanation, product: Product): HTMLElement[] {
  const { first, second, result } = computedOf(plan, product);
  const packed = (isPacked: boolean) => (isPacked ? ', packed (hatched)' : ', read where it lies');
  const items: [string, boolean, string][] = [
    ['block plan-a', plan.packs.a, `block of ${first}, MC x KC${packed(plan.packs.a)}`],
    ['block plan-b', plan.packs.b, `block of ${second}, KC x NC${packed(plan.packs.b)}`],
    ['block plan-c', false, `block of ${result}, MC x NC`],
    ['tile', false, `tile of ${result}, MR x NR`],
    ['panels', false, `MR rows of ${first} and NR columns of ${second}, which make the tile`],
  ];
  return items.map(([kind, isHatched, words]) => {
    const item = make('li');
    const svg = draw('svg', { viewBox: '0 0 22 14', 'aria-hidden': 'true' });
    const box = { x: '1', y: '1', width: '20', height: '12' };
    if (kind === 'panels')
      svg.append(
        draw('rect', { x: '1', y: '4', width: '9', height: '5', class: 'plan-panel plan-a' }),
        draw('rect', { x: '14', y: '1', width: '5', height: '12', class: 'plan-panel plan-b' }),
      );
    else svg.append(draw('rect', { ...box, class: `plan-${kind}` }));
    const operand = kind.endsWith('a') ? 'a' : 'b';
    if (isHatched)
      svg.append(
        draw('rect', { ...box, class: 'plan-hatch', fill: `url(#size-hatch-${operand})` }),
      );
    item.append(svg, make('span', words));
    return item;
  });
}

// --- in words ------------------------------------------------------------------------------------

const many = (count: number, noun: string) => `${whole(count)} ${noun}${count === 1 ? '' : 's'}`;

function regimeOf({ regime, m, n, transposed }: Explanation): string {
  const rows = transposed ? n : m;
  const base = regime.startsWith('GEMV')
    ? 'A single row, so each element of the other matrix serves once, and reading it takes the time'
    : regime.startsWith('skinny')
      ? `M is small (${rows}), so that packing must pay soon: blocks are small`
      : `M is large (${rows}), so that each packed block serves often: blocks are large`;
  const how = regime.includes('unpacked row-major')
    ? '. The second matrix is read where it lies, row by row'
    : regime.includes('unpacked column-major')
      ? '. The second matrix is read where it lies, column by column'
      : regime.includes('axpy')
        ? '. Multiples of the rows of the second matrix are added up'
        : '';
  return `${base}${how}.`;
}

/** Terms and what the plan says of each. The first text is a name; the second explains it. */
export function factsOf(plan: Explanation, product: Product): [string, string, string][] {
  const { first, second, result, rows, columns, depth } = computedOf(plan, product);
  const [mr, nr, kr] = plan.tile;
  const [mc, nc, kc] = plan.blocks;
  const packed = [plan.packs.a && first, plan.packs.b && second].filter(Boolean).join(' and ');
  const count = Math.ceil(rows / mc) * Math.ceil(columns / nc);
  const deep = Math.ceil(depth / kc);
  const facts: [string, string, string][] = [
    ['Regime', plan.regime, regimeOf(plan)],
    ['Micro-kernel', plan.kernel, 'The innermost loop: it computes one tile at a time.'],
    [
      'Tile',
      `MR x NR = ${mr} x ${nr}`,
      `Elements of ${result} that stay in registers` +
        (kr > 1 ? `. Each instruction takes ${kr} steps along K.` : '.'),
    ],
    [
      'Blocks',
      `MC = ${mc}, NC = ${nc}, KC = ${kc}`,
      `${many(count, 'block')} of ${result}` +
        (deep > 1 ? `, each summed in ${deep} steps along K.` : ', each summed in one go.'),
    ],
    [
      'Packed',
      packed || 'nothing',
      packed
        ? 'Copied block by block into the order in which the kernel reads.'
        : 'The kernel reads both operands where they lie.',
    ],
    [
      'Threads',
      String(plan.threads),
      plan.threads > 1 ? 'They share the tasks.' : 'The calling thread alone.',
    ],
    [
      'Result',
      plan.direct ? 'direct' : 'by the epilogue',
      plan.direct
        ? 'The micro-kernel writes it.'
        : 'A pass after the micro-kernel writes it, from sums in scratch memory.',
    ],
    ['Scratch', bytes(plan.scratch), 'Memory that only the call uses.'],
  ];
  if (plan.transposed)
    facts.unshift([
      'Transposed',
      `${result} = ${first} x ${second}`,
      'C has few columns, so wgemm computes its transpose. Picture and facts are of that.',
    ]);
  return facts;
}

/** The same in one paragraph, for those who do not see the picture. */
export function sentenceOf(plan: Explanation, product: Product): string {
  const { first, second, result, rows, columns, depth } = computedOf(plan, product);
  const say = (name: string) => name.replace('\u1d40', ' transposed');
  return (
    `${say(first)}, ${rows} x ${depth}, times ${say(second)}, ${depth} x ${columns}, is ` +
    `${say(result)}, ${rows} x ${columns}. ` +
    factsOf(plan, product)
      .map(([term, name]) => `${term}: ${say(name)}.`)
      .join(' ')
  );
}
