/** The figure at the top: the speed of one product, and how many times plain JavaScript that is. */
import type { Engine } from '../page/connect.ts';
import { draw, find } from '../page/dom.ts';
import { figure, threadsOf } from '../page/format.ts';
import { idle } from '../page/idle.ts';

/** GOP/s of the product by wgemm, and by a loop of plain JavaScript. */
export interface Speeds {
  wgemm: number;
  /** How many threads wgemm uses. The plain loop uses one. */
  threads: number;
  javascript?: number | undefined;
}

/** Measures the product as soon as the page is idle. Rejects if wgemm does not start. */
export async function measureFigure(engine: Engine): Promise<void> {
  const { dataset } = find(document, '#figure');
  drawTicks(scaleFor(0));
  await idle(300);
  dataset.state = 'measuring';
  try {
    const { speed: wgemm, threads } = await engine.measureOwn();
    showFigure({ wgemm, threads });
    showFigure({ wgemm, threads, javascript: await engine.measureJavaScript() });
  } finally {
    dataset.state = 'done';
  }
}

export function showFigure({ wgemm, threads, javascript }: Speeds): void {
  const scale = scaleFor(wgemm);
  drawTicks(scale);
  const gauge = find(document, '#figure');
  find(gauge, '#figure-own').textContent = figure(wgemm);
  const times = javascript && wgemm / javascript;
  if (times) find(gauge, '#figure-times').textContent = `${figure(times)} times`;
  find(gauge, '#figure-threads').textContent =
    `${threadsOf(threads)} against one loop` +
    (times && threads > 1 ? `: ${figure(times / threads)} times per thread` : '');
  const part = wgemm / scale;
  gauge.style.setProperty('--turn', `${180 * part - 90}deg`);
  gauge.style.setProperty('--part', `${100 * part}`);
}

/** The end of the scale: the first of 50, 100, 200, 500 ... above the figure. */
function scaleFor(value: number): number {
  for (let decade = 10; ; decade *= 10)
    for (const step of [2, 5, 10])
      if (step * decade > value && step * decade >= 50) return step * decade;
}

function drawTicks(scale: number): void {
  const count = 5;
  find<HTMLElement>(document, '.gauge-ticks').replaceChildren(
    ...Array.from({ length: count + 1 }, (_, i) => {
      const angle = Math.PI * (1 - i / count);
      const at = { x: 120 + 78 * Math.cos(angle), y: 124 - 78 * Math.sin(angle) };
      return draw('text', at, String((scale * i) / count));
    }),
  );
}
