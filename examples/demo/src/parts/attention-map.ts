/** A head as a heat map: rows look, columns are looked at. */

/** Where the cells are, in CSS pixels. Labels take the margin at the left and above. */
export interface Grid {
  margin: number;
  cell: number;
}

export interface MapColors {
  accent: string;
  soft: string;
  text: string;
}

/** Smaller cells have no room for labels. */
const smallestLabelled = 9;
const longestLabel = 8; // characters

export function gridFor(width: number, tokens: string[]): Grid {
  const longest = Math.max(0, ...tokens.map((token) => [...shortened(token)].length));
  const margin = 12 + 6.5 * longest;
  const cell = (width - margin) / tokens.length;
  if (cell >= smallestLabelled) return { margin, cell };
  return { margin: 0, cell: width / Math.max(1, tokens.length) };
}

/** The cell at a point of the map; undefined if there is none. */
export function cellAt(grid: Grid, count: number, x: number, y: number) {
  const column = Math.floor((x - grid.margin) / grid.cell);
  const row = Math.floor((y - grid.margin) / grid.cell);
  const isIn = column >= 0 && row >= 0 && column < count && row < count;
  return isIn ? { row, column } : undefined;
}

/**
 * Draws a map as large as its canvas is on the page.
 *
 * @param shares [tokens, tokens], from 0 to 1
 */
export function drawMap(
  canvas: HTMLCanvasElement,
  width: number,
  tokens: string[],
  shares: Float32Array,
  colors: MapColors,
): void {
  const ratio = devicePixelRatio || 1;
  const pixels = Math.max(1, Math.round(width * ratio));
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  const context = canvas.getContext('2d');
  if (!context) return;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, pixels, pixels);
  if (tokens.length === 0) return;
  const n = tokens.length;
  const { margin, cell } = gridFor(width, tokens);

  // Edges are whole pixels, so that all gaps are alike.
  const edge = (i: number) => Math.round((margin + i * cell) * ratio);
  const gap = Math.max(1, Math.round(ratio));
  for (let row = 0; row < n; ++row)
    for (let column = 0; column < n; ++column) {
      const [x, y] = [edge(column), edge(row)];
      const [w, h] = [edge(column + 1) - x - gap, edge(row + 1) - y - gap];
      context.globalAlpha = 1;
      context.fillStyle = colors.soft;
      context.fillRect(x, y, w, h);
      context.globalAlpha = shares[row * n + column]!;
      context.fillStyle = colors.accent;
      context.fillRect(x, y, w, h);
    }

  context.globalAlpha = 1;
  if (margin === 0) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = colors.text;
  context.font = `${Math.min(12, Math.max(9.5, cell - 3))}px system-ui, sans-serif`;
  context.textBaseline = 'middle';
  tokens.forEach((token, i) => {
    const label = shortened(token);
    const middle = margin + (i + 0.5) * cell;
    context.textAlign = 'right';
    context.fillText(label, margin - 5, middle, margin - 6);
    context.save();
    context.translate(middle, margin - 5);
    context.rotate(-Math.PI / 2);
    context.textAlign = 'left';
    context.fillText(label, 0, 0, margin - 6);
    context.restore();
  });
}

/** A token, cut to `most` characters. */
export function shortened(token: string, most = longestLabel): string {
  const characters = [...token];
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}\u2026` : token;
}
