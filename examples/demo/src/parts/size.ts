/** Size: sliders, a live curve of speed, and the plan of wgemm as a picture. */
import { proxy } from 'comlink';
import type { Explanation } from 'wgemm';
import type { Product, ProductType } from '../engine/product.ts';
import type { SizePoint, SizeUpdate } from '../engine/size.ts';
import type { Engine } from '../page/connect.ts';
import { draw, find, make } from '../page/dom.ts';
import { duration, figure } from '../page/format.ts';
import { runJob, showProblem } from '../page/job.ts';
import { latest } from '../page/latest.ts';
import type { Chart } from './size-chart.ts';
import { inOrder, swatch } from './size-lines.ts';
import { factsOf, legendOf, pictureOf } from './size-plan.ts';
import { axes, type Axis, largest, Sizes, stepOf, steps } from './size-sizes.ts';

/** ms without a change before a new curve is measured. */
const patience = 250;

/** What the page says of types that some contestants do not have. */
const notes: Partial<Record<ProductType, string>> = {
  bfloat16: 'JavaScript has no such numbers, so it has no line.',
  float16: 'JavaScript has no such products, so it has no line.',
  int64: 'JavaScript has only BigInt, far slower, so it has no line.',
  int8: 'Quantized: uint8 times int8, with a float32 result.',
};

type Kind = Pick<Product, 'dtype' | 'transA' | 'transB'>;

export function start(section: HTMLElement, engine: Engine): void {
  const sizes = new Sizes();
  const kindOf = readKind(section);
  const productOf = (): Product => ({
    m: sizes.get('m'),
    n: sizes.get('n'),
    k: sizes.get('k'),
    ...kindOf(),
  });
  const log = find<HTMLInputElement>(section, '#size-log');
  const again = find<HTMLButtonElement>(section, '#size-again');
  const status = find(section, '#size-status');
  const box = find(section, '#size-chart');

  // --- the curve ---
  let points = new Map<number, SizePoint>();
  let key = '';
  let chart: Chart | undefined;
  let hovered: number | undefined;

  const keyOf = () => `${sizes.curve().key} ${Object.values(kindOf()).join()}`;
  let shown = '';
  const showFigures = () => {
    const point = points.get(hovered ?? sizes.curve().x);
    const size = point ?? productOf();
    const names = namesIn(points);
    const text = JSON.stringify([size, names]);
    if (text === shown) return; // most points of a curve change nothing here
    shown = text;
    showNow(section, size, point, names);
  };
  const showCurve = () => {
    const names = namesIn(points);
    const { x, title } = sizes.curve();
    find(section, '#size-axis').textContent = title;
    chart?.show(
      [...points.values()].map((point) => ({ x: point.x, speeds: speedsOf(point) })),
      names,
      x,
      log.checked,
    );
    showLegend(section, names);
    showFigures();
  };
  const showWhole = () => {
    showPoints(section, points);
    box.setAttribute('aria-label', curveInWords(points, sizes.curve().title));
  };

  // --- measuring: at most one sweep runs, and a newer wish ends it ---
  let wish = 0; // counts changes: a sweep for an older wish is stale
  let isNear = false;
  let isWanted = true;
  let isRunning = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const sweep = async () => {
    const mine = wish;
    const isStale = () => mine !== wish;
    const kind = kindOf();
    const toMeasure = sizes.toMeasure(new Set(points.keys()));
    let isWhole: boolean | undefined = true;
    if (toMeasure.length > 0) {
      section.dataset.sweep = 'running';
      status.textContent = '';
      isWhole = await runJob<boolean, SizeUpdate>(
        section,
        'Measuring',
        (report) =>
          engine.sweepSizes(
            kind,
            toMeasure,
            proxy((fraction: number, update?: SizeUpdate) =>
              isStale() ? false : report(fraction, update),
            ),
          ),
        ({ point, problem, isWaiting }) => {
          if (isStale()) return;
          status.textContent = isWaiting ? 'Waiting until another part has measured.' : '';
          if (problem) showProblem(section, problem, true);
          if (point) {
            points.set(point.x, point);
            showCurve();
          }
        },
      );
    }
    if (isStale()) return;
    showWhole();
    section.dataset.sweep = isWhole ? 'done' : 'cancelled';
    status.textContent = isWhole
      ? `${points.size} sizes measured.`
      : `Stopped after ${points.size} sizes.`;
  };
  const run = async () => {
    if (isRunning || !isNear) return;
    isRunning = true;
    again.disabled = true;
    try {
      while (isWanted && isNear) {
        isWanted = false;
        await sweep();
      }
    } finally {
      isRunning = false;
      again.disabled = false;
    }
  };
  /** Ends the running sweep at once, and starts another a little later. */
  const restart = (isFresh = false) => {
    ++wish;
    if (isFresh || keyOf() !== key) {
      points = new Map();
      hovered = undefined;
    }
    key = keyOf();
    showCurve();
    section.dataset.sweep = isNear ? 'running' : 'waiting';
    status.textContent = '';
    clearTimeout(timer);
    timer = setTimeout(() => {
      sizes.settle();
      if (keyOf() !== key) points = new Map();
      key = keyOf();
      isWanted = true;
      void run();
    }, patience);
  };

  // --- the plan: asked for one at a time, the newest last ---
  let planned: { plan: Explanation; product: Product } | undefined;
  const askPlan = latest(
    async () => {
      const product = productOf();
      planned = { plan: await engine.explainSize(product), product };
      showPlan(section, planned.plan, planned.product);
    },
    (error) => {
      showProblem(section, error);
      find(section, '#size-explained').hidden = true;
    },
  );

  const change = () => {
    showSizes(section, sizes);
    find(section, '#size-note').textContent = notes[kindOf().dtype] ?? '';
    restart();
    void askPlan();
  };
  wireSizes(section, sizes, change);
  for (const id of ['type', 'ta', 'tb'])
    find(section, `#size-${id}`).addEventListener('change', change);
  log.addEventListener('change', showCurve);
  again.addEventListener('click', () => restart(true));
  document.addEventListener('peer', () => restart(true));
  let drawnWidth = 0;
  new ResizeObserver(([entry]) => {
    // A picture has another height at another width, which must not call this again.
    const { width } = entry!.contentRect;
    if (width === drawnWidth) return;
    drawnWidth = width;
    requestAnimationFrame(() => {
      if (planned) showPlan(section, planned.plan, planned.product);
    });
  }).observe(find(section, '#size-picture'));

  showSizes(section, sizes);
  key = keyOf();
  showCurve();
  const observer = new IntersectionObserver((entries) => {
    isNear = entries.at(-1)!.isIntersecting;
    if (!isNear) return;
    void begin();
    void run();
  });
  let hasBegun = false;
  const begin = async () => {
    if (hasBegun) return;
    hasBegun = true;
    void askPlan();
    try {
      const { makeChart } = await import('./size-chart.ts');
      chart = makeChart(box, (x) => {
        if (x === hovered) return;
        hovered = x;
        showFigures();
      });
      showCurve();
    } catch (error) {
      box.textContent = `The curve cannot be drawn: ${(error as Error).message}`;
    }
  };
  observer.observe(find(section, '.size-stage'));
}

// --- controls ------------------------------------------------------------------------------------

function readKind(section: HTMLElement): () => Kind {
  const type = find<HTMLSelectElement>(section, '#size-type');
  const [a, b] = ['#size-ta', '#size-tb'].map((id) => find<HTMLInputElement>(section, id));
  return () => ({
    dtype: type.value as ProductType,
    transA: a!.checked,
    transB: b!.checked,
  });
}

const controlsOf = (section: HTMLElement, axis: Axis) => ({
  slider: find<HTMLInputElement>(section, `#size-${axis}`),
  number: find<HTMLInputElement>(section, `#size-${axis}-number`),
  lock: find<HTMLButtonElement>(section, `#size-${axis}-lock`),
});

function wireSizes(section: HTMLElement, sizes: Sizes, onChange: () => void): void {
  for (const axis of axes) {
    const { slider, number, lock } = controlsOf(section, axis);
    slider.max = String(steps.length - 1);
    slider.addEventListener('input', () => {
      sizes.set(axis, steps[slider.valueAsNumber]!);
      onChange();
    });
    number.addEventListener('change', () => {
      const value = Math.round(number.valueAsNumber);
      if (value >= 1) sizes.set(axis, Math.min(value, largest));
      onChange(); // it also puts back a number if there is none
    });
    lock.append(padlock());
    lock.addEventListener('click', () => {
      sizes.toggle(axis);
      onChange();
    });
  }
}

/** A padlock whose shackle CSS opens. */
function padlock(): SVGSVGElement {
  const svg = draw('svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true' });
  svg.append(
    draw('path', { class: 'size-shackle', d: 'M 5 8 V 5 a 3 3 0 0 1 6 0 V 8' }),
    draw('path', { class: 'size-body', d: 'M 3.5 7.5 h 9 v 6.5 h -9 z' }),
  );
  return svg;
}

function showSizes(section: HTMLElement, sizes: Sizes): void {
  for (const axis of axes) {
    const { slider, number, lock } = controlsOf(section, axis);
    const size = sizes.get(axis);
    slider.valueAsNumber = stepOf(size);
    slider.setAttribute('aria-valuetext', String(size));
    slider.style.setProperty('--part', `${(100 * stepOf(size)) / (steps.length - 1)}%`);
    number.value = String(size);
    lock.setAttribute('aria-pressed', String(sizes.locked[axis]));
    lock.title = sizes.locked[axis] ? 'Moves with the other locked sizes' : 'Moves alone';
  }
}

// --- figures -------------------------------------------------------------------------------------

const speedOf = ({ m, n, k }: SizePoint, ms: number) => (2 * m * n * k) / ms / 1e6;

const speedsOf = (point: SizePoint): Record<string, number> =>
  Object.fromEntries(Object.entries(point.ms).map(([name, ms]) => [name, speedOf(point, ms)]));

/** Every contestant of any point. */
const namesIn = (points: Map<number, SizePoint>): string[] =>
  inOrder(
    new Set([...points.values()].flatMap(({ ms, tooLong }) => Object.keys({ ...ms, ...tooLong }))),
  );

/** GOP/s; small products have far less than one. */
const speedText = (value: number) => (value >= 0.1 ? figure(value) : value.toPrecision(2));

const dimensions = ({ m, n, k }: Pick<Product, 'm' | 'n' | 'k'>) => `${m} x ${n} x ${k}`;

const cell = (text: string, title = '') => {
  const made = make('td', text);
  if (title) made.title = title;
  return made;
};

function showLegend(section: HTMLElement, names: string[]): void {
  const list = find(section, '#size-legend');
  if (list.dataset.names === names.join()) return;
  list.dataset.names = names.join();
  list.replaceChildren(
    ...names.map((name) => {
      const item = make('li');
      item.append(swatch(name), make('span', name));
      return item;
    }),
  );
}

/** The figures of one size: the chosen one, or the one under the pointer. */
function showNow(
  section: HTMLElement,
  size: Pick<Product, 'm' | 'n' | 'k'>,
  point: SizePoint | undefined,
  names: string[],
): void {
  find(section, '#size-now-title').textContent = `M x N x K = ${dimensions(size)}`;
  const column = Object.values(point?.ms ?? {}).map((ms) => ms / 1000);
  find(section, '#size-now tbody').replaceChildren(
    ...(names.length > 0 ? names : ['wgemm']).map((name) => {
      const line = make('tr');
      line.dataset.name = name;
      const head = make('th');
      head.scope = 'row';
      const box = make('div', '', 'size-name');
      box.append(swatch(name), make('span', name));
      head.append(box);
      const ms = point?.ms[name];
      const long = point?.tooLong[name];
      line.append(head);
      // The page compares a peer on one thread with wgemm on one.
      const own = point?.ms[name.endsWith(', 1 thread') ? 'wgemm, 1 thread' : 'wgemm'];
      if (ms !== undefined)
        line.append(
          cell(`${speedText(speedOf(point!, ms))} GOP/s`),
          cell(duration(ms / 1000, column)),
          cell(name.startsWith('wgemm') || own === undefined ? '' : `${figure(ms / own)} x`),
        );
      else
        line.append(
          cell(long ? 'not measured' : '-'),
          cell(long ? `about ${duration(long / 1000)}` : '-', long ? 'Too long: estimated' : ''),
          cell(''),
        );
      return line;
    }),
  );
}

function showPoints(section: HTMLElement, points: Map<number, SizePoint>): void {
  const names = namesIn(points);
  const table = find(section, '#size-points');
  const head = make('tr');
  for (const name of ['M x N x K', ...names.map((name) => `${name}, GOP/s`)]) {
    const made = make('th', name);
    made.scope = 'col';
    head.append(made);
  }
  find(table, 'thead').replaceChildren(head);
  find(table, 'tbody').replaceChildren(
    ...[...points.values()]
      .sort((a, b) => a.x - b.x)
      .map((point) => {
        const line = make('tr');
        line.dataset.x = String(point.x);
        const first = make('th', dimensions(point));
        first.scope = 'row';
        const speeds = speedsOf(point);
        const text = (name: string) => (name in speeds ? speedText(speeds[name]!) : '-');
        line.append(first, ...names.map((name) => make('td', text(name))));
        return line;
      }),
  );
}

/** What the curve shows, for those who do not see it. */
function curveInWords(points: Map<number, SizePoint>, title: string): string {
  const sorted = [...points.values()].sort((a, b) => a.x - b.x);
  const parts = namesIn(points).map((name) => {
    const own = sorted.filter(({ ms }) => name in ms);
    if (own.length === 0) return `${name} was not measured.`;
    const speed = (point: SizePoint) => speedText(speedOf(point, point.ms[name]!));
    const best = own.reduce((a, b) => (speedOf(b, b.ms[name]!) > speedOf(a, a.ms[name]!) ? b : a));
    return (
      `${name}: from ${speed(own[0]!)} GOP/s at ${own[0]!.x} to ${speed(own.at(-1)!)} at ` +
      `${own.at(-1)!.x}, at best ${speed(best)} at ${best.x}.`
    );
  });
  return `Curve of speed by size (${title}). ${parts.join(' ')}`;
}

// --- the plan ------------------------------------------------------------------------------------

function showPlan(section: HTMLElement, plan: Explanation, product: Product): void {
  const whole = find(section, '#size-explained');
  whole.hidden = false;
  const box = find(section, '#size-picture');
  const width = Math.min(Math.max(box.clientWidth, 260), 640);
  const { svg, isToScale } = pictureOf(plan, product, width);
  box.replaceChildren(svg);
  find(section, '#size-key').replaceChildren(...legendOf(plan, product));
  find(section, '#size-scale').textContent = isToScale
    ? 'The matrices are drawn to scale.'
    : 'Not to scale: the short sides would not be seen.';
  find(section, '#size-facts').replaceChildren(
    ...factsOf(plan, product).map(([term, name, words]) => {
      const group = make('div');
      const value = make('dd');
      value.append(make('b', name), ` ${words}`);
      group.append(make('dt', term), value);
      return group;
    }),
  );
}
