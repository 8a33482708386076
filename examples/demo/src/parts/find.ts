/** Find: a map of many vectors, and the nearest of the one under the pointer. */
import type { Form, Nearest, Points, Search } from '../engine/find.ts';
import type { Engine } from '../page/connect.ts';
import { find, make, say } from '../page/dom.ts';
import { bytes, duration, threadsOf, whole } from '../page/format.ts';
import { runJob, showProblem } from '../page/job.ts';
import { savesData, wantsLessMotion } from '../page/wishes.ts';
import { cssColors, drawMarks, drawPoints, Grid, isDark, placeAt, type Place } from './find-map.ts';

const many = 100_000;
const few = 25_000;

/** ms without a move after which the loop checks the search. It would hold up a moving pointer. */
const rest = 250;

/** ms between two changes of the texts while the pointer moves. The marks follow in each frame. */
const betweenTexts = 100;

/** How far an arrow key moves the cross, on a map from -1 to 1. */
const step = 0.01;
const largeStep = 0.06;

/** ms of the tour after the page has started by itself. */
const tourMs = 6000;

/** Times that a mean is of: the clocks of some browsers are coarse. */
const timesKept = 12;

/** What is on the page while there are vectors. */
interface State {
  points: Points;
  grid: Grid;
  /** By cluster. */
  colors: string[];
  times: Map<Form, number[]>;
  query?: number | undefined;
  nearest?: Nearest | undefined;
  cross?: Place | undefined;
}

export function start(section: HTMLElement, engine: Engine): void {
  const points = find<HTMLCanvasElement>(section, '#find-points');
  const map = find<HTMLCanvasElement>(section, '#find-map');
  const frame = find(section, '#find-frame');
  const makeButton = find<HTMLButtonElement>(section, '#find-make');
  const free = find<HTMLButtonElement>(section, '#find-free');
  const more = find<HTMLButtonElement>(section, '#find-more');
  const forms = find<HTMLFieldSetElement>(section, '#find-forms');
  const chosen = (): Form =>
    find<HTMLInputElement>(forms, 'input:checked').value as Exclude<Form, 'loop'>;
  const { deviceMemory = 4 } = navigator as Navigator & { deviceMemory?: number };
  // A page takes no 430 MB by itself where they may be missing.
  const isShort = deviceMemory <= 4 || matchMedia('(max-width: 40rem)').matches;
  let count = isShort ? few : many;
  const showCount = () => {
    for (const place of section.querySelectorAll('.find-count')) place.textContent = whole(count);
    find(section, '#find-cost').textContent =
      `They take ${count === few ? 107 : 430} MB of memory.`;
    more.hidden = count === many;
  };

  let state: State | undefined;
  const drawAll = () => {
    if (!state) return;
    drawPoints(points, frame.clientWidth, state.points);
    mark();
  };
  const mark = () => {
    if (!state) return;
    const { query, nearest, cross } = state;
    const marks = { query, nearest: nearest?.positions, cross };
    drawMarks(map, frame.clientWidth, state.points, marks);
  };

  // --- search: one at a time, and the newest next ------------------------------------------------

  let wanted: number | undefined;
  let last: number | undefined; // the vector of the last search, which may not have ended
  let isSearching = false;
  let isResting = false;
  let lastText = 0;
  let restTimer: ReturnType<typeof setTimeout> | undefined;

  const search = async () => {
    if (isSearching) return;
    isSearching = true;
    try {
      while (state && wanted !== undefined) {
        const current = state;
        const index = wanted;
        [wanted, last] = [undefined, index];
        const used = isResting || !has(current, chosen()) ? current.points.forms : [chosen()];
        const results = await engine.nearestTen(index, used);
        if (state !== current) break; // it was freed meanwhile
        current.query = index;
        current.nearest = results.find(({ form }) => form === chosen()) ?? results.at(-1)!;
        mark();
        keepTimes(current, results);
        if (isResting || performance.now() - lastText > betweenTexts) {
          lastText = performance.now();
          showResults(section, current, results);
        }
        if (isResting && wanted === undefined) describe(section, current);
      }
    } catch (error) {
      showProblem(section, error);
    } finally {
      isSearching = false;
    }
  };
  const ask = (index: number) => {
    if (index === state?.query && !isSearching) return;
    wanted = index;
    isResting = false;
    void search();
    clearTimeout(restTimer);
    restTimer = setTimeout(check, rest);
  };
  /** The loop checks what the page shows, and the words say it. */
  const check = () => {
    wanted ??= last;
    isResting = true;
    void search();
  };

  // --- the tour: until the visitor takes over ----------------------------------------------------

  let tourEnd = 0;
  const endTour = () => (tourEnd = 0);
  const tour = (time: number) => {
    const left = tourEnd - time;
    if (!state || left < 0) return;
    const angle = (5 * left) / tourMs;
    ask(state.grid.nearest({ x: 0.7 * Math.cos(2 * angle), y: 0.7 * Math.sin(3 * angle) }));
    requestAnimationFrame(tour);
  };

  // --- the pointer and the keys ------------------------------------------------------------------

  const point = (event: PointerEvent) => {
    endTour();
    if (!state) return;
    const box = map.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    const y = (event.clientY - box.top) / box.height;
    if (state.cross) {
      state.cross = undefined;
      mark();
    }
    ask(state.grid.nearest(placeAt(x, y)));
  };
  map.addEventListener('pointermove', point);
  map.addEventListener('pointerdown', point);
  map.addEventListener('keydown', (event) => {
    const move = moves[event.key];
    if (!state || !move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault(); // the page would scroll
    endTour();
    const by = event.shiftKey ? largeStep : step;
    const from = state.cross ?? placeOf(state, state.query ?? 0);
    state.cross = { x: bounded(from.x + by * move[0]), y: bounded(from.y + by * move[1]) };
    mark();
    ask(state.grid.nearest(state.cross));
  });
  map.addEventListener('blur', () => {
    if (!state) return;
    state.cross = undefined;
    mark();
  });
  map.addEventListener('focus', () => {
    // A cross shows where the keys begin. A pointer needs none.
    if (!state || state.query === undefined || !map.matches(':focus-visible')) return;
    state.cross = placeOf(state, state.query);
    mark();
  });
  forms.addEventListener('change', () => {
    endTour();
    showChoice();
    check();
  });
  const showChoice = () => {
    for (const row of section.querySelectorAll<HTMLElement>('#find-times tbody tr'))
      row.toggleAttribute('data-current', !!state && row.dataset.form === chosen());
  };

  // --- making and freeing ------------------------------------------------------------------------

  const show = (isMade: boolean) => {
    find(section, '#find-start').hidden = isMade;
    find(section, '#find-hint').hidden = !isMade;
    map.hidden = points.hidden = !isMade;
    free.disabled = !isMade;
    forms.disabled = !isMade || !state?.points.forms.includes('float32');
    showChoice();
  };
  const makeVectors = async (isAsked = true) => {
    makeButton.disabled = more.disabled = true;
    const words = find(section, '#find-words');
    const made = await runJob(section, 'Making vectors', (report) =>
      engine.makeVectors(count, report),
    );
    makeButton.disabled = more.disabled = false;
    if (!made) {
      void engine.freeVectors(); // it may have ended as it was cancelled
      return;
    }
    if (made.lack) showProblem(section, lackOf(made), true);
    words.textContent = '';
    find(section, '#find-threads').textContent =
      made.threads > 0 ? `${threadsOf(made.threads)} against one loop` : '';
    await nextTask();
    state = {
      points: made,
      grid: new Grid(made.places),
      colors: cssColors(isDark()),
      times: new Map(),
    };
    show(true);
    await nextTask();
    drawAll();
    ask(state.grid.nearest({ x: 0.05, y: 0.1 }));
    // The button that had the focus is gone.
    const { activeElement } = document;
    if (isAsked && (activeElement === document.body || activeElement === makeButton))
      map.focus({ preventScroll: true });
  };
  const freeVectors = () => {
    endTour();
    clearTimeout(restTimer);
    wanted = last = undefined;
    const { float32, int8, loop } = state!.points.bytes;
    state = undefined;
    void engine.freeVectors();
    clear(section);
    find(section, '.notice').hidden = true;
    find(section, '#find-words').textContent = `${bytes(float32 + int8 + loop)} were freed.`;
    show(false);
  };
  makeButton.addEventListener('click', () => void makeVectors());
  more.addEventListener('click', () => {
    if (state) freeVectors();
    count = many;
    showCount();
    void makeVectors();
  });
  free.addEventListener('click', () => {
    freeVectors();
    makeButton.focus({ preventScroll: true });
  });

  new ResizeObserver(() => drawAll()).observe(frame);
  document.addEventListener('theme', () => {
    drawAll();
    if (!state) return;
    state.colors = cssColors(isDark());
    find(section, '#find-list').replaceChildren();
    showList(section, state);
  });
  show(false);
  showCount();
  makeButton.disabled = false;

  if (wantsLessMotion() || savesData()) return;
  let isBegun = false;
  const observer = new IntersectionObserver(
    ([entry]) => {
      if (!entry!.isIntersecting) return endTour();
      if (state || isBegun || makeButton.disabled) return;
      isBegun = true;
      void makeVectors(false).then(() => {
        if (!state) return;
        tourEnd = performance.now() + tourMs;
        requestAnimationFrame(tour);
      });
    },
    { threshold: 0.25 },
  );
  observer.observe(frame);
}

const moves: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

const bounded = (coordinate: number) => Math.min(0.98, Math.max(-0.98, coordinate));

const nextTask = () => new Promise((resolve) => setTimeout(resolve));

const has = ({ points }: State, form: Form) => points.forms.includes(form);

const placeOf = ({ points: { places } }: State, index: number): Place => ({
  x: places[2 * index]!,
  y: places[2 * index + 1]!,
});

const lackOf = ({ count, lack }: Points) =>
  count < many ? `${lack} There are ${whole(count)} vectors.` : lack;

// --- what the page shows of a search -------------------------------------------------------------

function keepTimes({ times }: State, results: Search[]): void {
  for (const { form, ms } of results) {
    const last = times.get(form) ?? [];
    times.set(form, last);
    last.push(ms);
    if (last.length > timesKept) last.shift();
  }
}

function showResults(section: HTMLElement, state: State, results: Search[]): void {
  // All times have one unit, also times of earlier searches.
  const means = new Map([...state.times].map(([form, times]) => [form, meanOf(times) / 1000]));
  for (const [form, mean] of means)
    say(find(section, `#find-ms-${form}`), duration(mean, [...means.values()]));
  for (const { form, agreed } of results) {
    if (agreed === undefined || form === 'loop') continue;
    const cell = find(section, `#find-agree-${form}`);
    cell.textContent = `${agreed} of ${state.nearest!.positions.length} agree`;
    cell.dataset.query = String(state.query);
  }
  showList(section, state);
}

/** The mean of the faster half: at other times another program may have had the processor. */
function meanOf(times: number[]): number {
  const kept = [...times].sort((a, b) => a - b).slice(0, Math.ceil(times.length / 2));
  return kept.reduce((sum, ms) => sum + ms, 0) / kept.length;
}

function showList(section: HTMLElement, { points, colors, query, nearest }: State): void {
  if (!nearest) return;
  const list = find(section, '#find-list');
  list.dataset.query = String(query);
  // The lines stay, so that a moving pointer makes no elements.
  while (list.children.length < nearest.positions.length) list.append(makeLine());
  nearest.positions.forEach((index, i) => {
    const { children } = list.children[i]!;
    const swatch = children[0] as HTMLElement;
    const cluster = points.clusterOf[index]!;
    const title = `cluster ${cluster + 1}`;
    if (swatch.title !== title) swatch.style.background = colors[cluster]!;
    swatch.title = title;
    say(children[1]!, whole(index));
    say(children[2]!, nearest.scores[i]!.toFixed(4));
  });
}

function makeLine(): HTMLElement {
  const line = make('li');
  line.append(make('span', '', 'find-swatch'), make('span'), make('span', '', 'find-cosine'));
  return line;
}

function describe(section: HTMLElement, { points, query, nearest }: State): void {
  if (query === undefined || !nearest) return;
  const { positions, scores } = nearest;
  const cluster = points.clusterOf[query]!;
  const inside = positions.filter((index) => points.clusterOf[index] === cluster).length;
  find(section, '#find-words').textContent =
    `Vector ${whole(query)}, cluster ${cluster + 1}: ${inside} of its ten nearest are, too. ` +
    `The nearest, ${whole(positions[0]!)}, has a cosine of ${scores[0]!.toFixed(4)}.`;
}

function clear(section: HTMLElement): void {
  for (const cell of section.querySelectorAll<HTMLElement>('#find-times td[id]')) {
    cell.textContent = '-';
    delete cell.dataset.query;
  }
  find(section, '#find-list').replaceChildren();
  for (const canvas of section.querySelectorAll('canvas')) canvas.width = canvas.height = 0;
}
