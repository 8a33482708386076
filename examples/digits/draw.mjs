// Draws digits on a terminal. A character is twice as high as wide, so it shows two pixels, one
// above the other.

const blocks = [' ', '▄', '▀', '█'];
const width = 22; // a digit takes at most 20 of its 28 columns
const gap = '  ';

/**
 * Draws pictures in a row, as many as fit in `columns`. Each is { image, side, caption }: pixels
 * from 0 to 1, and a line below them.
 */
export function drawDigits(pictures, columns) {
  const perLine = Math.max(1, Math.floor((columns + gap.length) / (width + gap.length)));
  const lines = [];
  for (let i = 0; i < pictures.length; i += perLine) {
    const drawn = pictures.slice(i, i + perLine).map(drawDigit);
    const height = Math.max(...drawn.map((picture) => picture.length));
    for (let line = 0; line < height; ++line)
      lines.push(
        drawn
          .map((picture) => picture[line])
          .join(gap)
          .trimEnd(),
      );
    lines.push('');
  }
  return lines.join('\n');
}

function drawDigit({ image, side, caption }) {
  const left = (side - width) >> 1;
  const lines = [];
  for (let y = 2; y < side - 2; y += 2) {
    let line = '';
    for (let x = left; x < left + width; ++x) {
      const upper = image[y * side + x] > 0.4;
      const lower = image[(y + 1) * side + x] > 0.4;
      line += blocks[2 * upper + lower];
    }
    lines.push(line);
  }
  return [...lines, caption.padEnd(width)];
}
