/** The lines of the curve: each contestant has a colour and a pattern, here and in the tables. */
import { draw } from '../page/dom.ts';

interface Line {
  /** A custom property of style.css. */
  colour: string;
  /** Lengths of dashes and gaps, in pixels. */
  dash: number[];
  width: number;
}

/** By the start of the name: '... , 1 thread' may follow. The first that fits counts. */
const lines: [start: string, line: Line][] = [
  ['wgemm,', { colour: '--accent', dash: [7, 4], width: 1.75 }],
  ['wgemm', { colour: '--accent', dash: [], width: 2.5 }],
  ['JavaScript', { colour: '--text-2', dash: [2, 3], width: 2 }],
  ['tfjs', { colour: '--peer-1', dash: [10, 3, 2, 3], width: 2 }],
  ['', { colour: '--peer-2', dash: [12, 4], width: 2 }],
];

const entryOf = (name: string) => lines.find(([start]) => name.startsWith(start))!;

export const lineOf = (name: string): Line => entryOf(name)[1];

/** Names in the order of legends and tables: wgemm, JavaScript, then the libraries. */
export const inOrder = (names: Iterable<string>): string[] => {
  const rank = (name: string) => (name === 'wgemm' ? -1 : lines.indexOf(entryOf(name)));
  return [...names].sort((a, b) => rank(a) - rank(b));
};

/** A short piece of the line. */
export function swatch(name: string): SVGSVGElement {
  const { colour, dash, width } = lineOf(name);
  const svg = draw('svg', { viewBox: '0 0 28 8', class: 'size-swatch', 'aria-hidden': 'true' });
  const path = draw('path', {
    d: 'M 0 4 H 28',
    'stroke-width': String(width),
    'stroke-dasharray': dash.join(' '),
  });
  path.style.stroke = `var(${colour})`;
  svg.append(path);
  return svg;
}
