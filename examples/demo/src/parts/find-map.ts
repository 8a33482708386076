/** The map: draws all vectors, and finds the one that is nearest to a place. */
import type { Points } from '../engine/find.ts';

/** Cells per side of the index. */
const cells = 128;

/** How much of the map the places from -1 to 1 take. */
const scale = 0.5;

/** Device pixels per side, at most: the drawing must not hold up the page. */
const most = 1120;

export interface Place {
  x: number;
  y: number;
}

/** Finds the nearest point by a grid: only the cells around a place are looked at. */
export class Grid {
  readonly #places: Float32Array;
  readonly #starts = new Int32Array(cells * cells + 1);
  readonly #order: Int32Array;

  constructor(places: Float32Array) {
    const count = places.length / 2;
    this.#places = places;
    this.#order = new Int32Array(count);
    const cellOf = new Int32Array(count);
    for (let i = 0; i < count; ++i) {
      cellOf[i] = cells * cell(places[2 * i + 1]!) + cell(places[2 * i]!);
      ++this.#starts[cellOf[i]! + 1]!;
    }
    for (let c = 0; c < cells * cells; ++c) this.#starts[c + 1]! += this.#starts[c]!;
    const next = this.#starts.slice();
    for (let i = 0; i < count; ++i) this.#order[next[cellOf[i]!]!++] = i;
  }

  nearest({ x, y }: Place): number {
    const column = cell(x);
    const row = cell(y);
    let found = 0;
    let best = Infinity;
    // A ring of cells at distance r is at least r - 1 cells away.
    for (let r = 0; r < cells && best > (((r - 1) * 2) / cells) ** 2; ++r)
      for (let i = Math.max(0, row - r); i <= Math.min(cells - 1, row + r); ++i) {
        const step = Math.abs(i - row) === r ? 1 : 2 * r;
        for (let j = column - r; j <= column + r; j += step) {
          if (j < 0 || j >= cells) continue;
          for (let at = this.#starts[cells * i + j]!; at < this.#starts[cells * i + j + 1]!; ++at) {
            const index = this.#order[at]!;
            const distance =
              (this.#places[2 * index]! - x) ** 2 + (this.#places[2 * index + 1]! - y) ** 2;
            if (distance < best) {
              best = distance;
              found = index;
            }
          }
        }
      }
    return found;
  }
}

const cell = (coordinate: number) =>
  Math.min(cells - 1, Math.max(0, Math.floor(((coordinate + 1) * cells) / 2)));

// --- colours -------------------------------------------------------------------------------------

export const isDark = (): boolean => document.documentElement.classList.contains('dark');

/** A hue per cluster, and a lightness that differs from most clusters next to it. */
export function colorOf(cluster: number, dark: boolean): [number, number, number] {
  const hue = (cluster * 137.5 + 10) % 360;
  const saturation = 0.7;
  const lightness = (dark ? 0.6 : 0.34) + 0.06 * (cluster % 3);
  const reach = saturation * Math.min(lightness, 1 - lightness);
  return [0, 8, 4].map((n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  }) as [number, number, number];
}

/** The colours as CSS has them, by cluster. */
export const cssColors = (dark: boolean): string[] =>
  Array.from({ length: 256 }, (_, cluster) => `rgb(${colorOf(cluster, dark).join(' ')})`);

// --- drawing -------------------------------------------------------------------------------------

/** Sets the size of a canvas to its place on the page. @returns device pixels per CSS pixel */
function fit(canvas: HTMLCanvasElement, sizeOnPage: number): number {
  const side = Math.round(Math.min(most, sizeOnPage * devicePixelRatio));
  if (canvas.width !== side) [canvas.width, canvas.height] = [side, side];
  return side / sizeOnPage;
}

/** Where a place is on a square of some side; y goes up. */
const toSquare = (coordinate: number, side: number) => (0.5 + scale * coordinate) * side;

/** The place under a point of a square: from 0 to 1, y down. */
export const placeAt = (x: number, y: number): Place => ({
  x: (x - 0.5) / scale,
  y: (0.5 - y) / scale,
});

/** Draws all points. Where many are, their colour is stronger. */
export function drawPoints(
  canvas: HTMLCanvasElement,
  sizeOnPage: number,
  { places, clusterOf, count }: Points,
): void {
  if (sizeOnPage === 0) return; // createImageData() would throw
  const ratio = fit(canvas, sizeOnPage);
  const side = canvas.width;
  const context = canvas.getContext('2d')!;
  const image = context.createImageData(side, side);
  const pixels = image.data;
  const dark = isDark();
  const colors = Array.from({ length: 256 }, (_, cluster) => colorOf(cluster, dark));
  const dot = Math.max(1, Math.round(ratio));
  const part = dark ? 0.4 : 0.45; // how much of what is missing a point adds
  for (let i = 0; i < count; ++i) {
    const left = Math.round(toSquare(places[2 * i]!, side) - dot / 2);
    const upper = Math.round(toSquare(-places[2 * i + 1]!, side) - dot / 2);
    const color = colors[clusterOf[i]!]!;
    for (let y = upper; y < upper + dot; ++y)
      for (let x = left; x < left + dot; ++x) {
        if (x < 0 || y < 0 || x >= side || y >= side) continue;
        const at = 4 * (y * side + x);
        pixels[at] = color[0];
        pixels[at + 1] = color[1];
        pixels[at + 2] = color[2];
        pixels[at + 3] = pixels[at + 3]! + (255 - pixels[at + 3]!) * part;
      }
  }
  context.putImageData(image, 0, 0);
}

/** What is marked: the vector that was searched for, its nearest, and the cross of the keys. */
export interface Marks {
  query?: number | undefined;
  nearest?: Uint32Array | undefined;
  cross?: Place | undefined;
}

const none = new Uint32Array();

/**
 * Marks are drawn with a rim in the colour of the page, so that they stand out from the points. A
 * moving pointer draws them in each frame, so this makes few objects.
 */
export function drawMarks(
  canvas: HTMLCanvasElement,
  sizeOnPage: number,
  { places }: Points,
  { query, nearest = none, cross }: Marks,
): void {
  const ratio = fit(canvas, sizeOnPage);
  const context = canvas.getContext('2d')!;
  const styles = getComputedStyle(canvas);
  const ink = styles.getPropertyValue('--text');
  const rim = styles.getPropertyValue('--page');
  const accent = styles.getPropertyValue('--accent');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, sizeOnPage, sizeOnPage);
  const left = (index: number) => toSquare(places[2 * index]!, sizeOnPage);
  const top = (index: number) => toSquare(-places[2 * index + 1]!, sizeOnPage);
  const stroke = (width: number, color: string) => {
    context.lineWidth = width;
    context.strokeStyle = color;
    context.stroke();
  };
  const part = Math.max(0.7, Math.min(1, sizeOnPage / 560)); // smaller marks on a small map
  if (query !== undefined) {
    context.lineCap = 'round';
    context.beginPath();
    for (const index of nearest) {
      context.moveTo(left(query), top(query));
      context.lineTo(left(index), top(index));
    }
    stroke(4 * part, rim);
    stroke(1.5, ink);
    const disc = (index: number, radius: number, color: string) => {
      context.beginPath();
      context.arc(left(index), top(index), radius, 0, 2 * Math.PI);
      context.fillStyle = color;
      context.fill();
      stroke(1.5, rim);
    };
    for (const index of nearest) disc(index, 4 * part, ink);
    disc(query, 6.5 * part, accent);
  }
  if (cross) {
    const [x, y] = [toSquare(cross.x, sizeOnPage), toSquare(-cross.y, sizeOnPage)];
    context.beginPath();
    for (const [dx, dy] of [
      [1, 0],
      [-1, 0],
      [0, 1],
      [0, -1],
    ] as const) {
      context.moveTo(x + 10 * dx, y + 10 * dy);
      context.lineTo(x + 22 * dx, y + 22 * dy);
    }
    stroke(4, rim);
    stroke(2, accent);
  }
}
