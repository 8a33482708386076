// Draws docs/.vitepress/public/og.png, the picture that other sites show next to a link to the
// site. Chromium makes it of an SVG. It has no figures, so it stays true. Draw it again when the
// claim of the home page or the logo changes:
//   node scripts/share-picture.mjs
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch } from '../tests/browser/puppeteer.mjs';
import { fail, main, root } from './run.mjs';
import { setUp } from './setup.mjs';

const size = { width: 1200, height: 630 };
const font = 'system-ui, Noto Sans, Segoe UI, DejaVu Sans, sans-serif';

/** The first heading of the home page. */
function claim() {
  const page = readFileSync(join(root, 'docs', 'index.md'), 'utf8');
  return /^# (.*)$/m.exec(page)?.[1] ?? fail('share-picture: docs/index.md has no heading');
}

/** Words on lines. @param most the letters per line */
function wrapped(text, most) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** Squares of a product of matrices: A on the left, B above, C in the corner. */
function squares() {
  const [cell, gap, n] = [34, 6, 5];
  const step = cell + gap;
  const tint = (i, j) => 0.25 + 0.75 * Math.abs(Math.sin(1.7 * i + 2.3 * j + i * j));
  const grid = (left, top, color) =>
    Array.from({ length: n * n }, (_, at) => {
      const [i, j] = [Math.floor(at / n), at % n];
      return (
        `<rect x="${left + j * step}" y="${top + i * step}" width="${cell}" height="${cell}" ` +
        `rx="5" fill="${color}" opacity="${tint(i, j).toFixed(2)}"/>`
      );
    }).join('');
  const [left, top, between] = [700, 90, n * step + 24];
  return (
    grid(left + between, top, '#57707a') +
    grid(left, top + between, '#57707a') +
    grid(left + between, top + between, '#2dd4bf')
  );
}

function picture() {
  const lines = wrapped(claim(), 15);
  const text = lines.map((line, i) => `<tspan x="80" y="${250 + 76 * i}">${line}</tspan>`).join('');
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" ` +
    `font-family="${font}"><rect width="100%" height="100%" fill="#14181a"/>${squares()}` +
    `<text x="80" y="150" font-size="44" font-weight="700" fill="#4fd1c1">wgemm</text>` +
    `<text font-size="64" font-weight="700" letter-spacing="-1.5" fill="#eef3f3">${text}</text>` +
    `<text x="80" y="540" font-size="28" fill="#9aa7a7">WebAssembly SIMD, no dependencies</text>` +
    `</svg>`
  );
}

await main(async () => {
  await setUp('site', 'chromium');
  const browser = await launch('chromium');
  try {
    const page = await browser.newPage();
    await page.setViewport(size);
    await page.setContent(`<body style="margin:0">${picture()}</body>`);
    const path = join(root, 'docs', '.vitepress', 'public', 'og.png');
    await page.screenshot({ path });
    console.log(`share-picture: ${path}`);
  } finally {
    await browser.close();
  }
});
