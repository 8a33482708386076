/** Attention: six heads over a sentence, as maps and as shades of its words. */
import type { Attention, AttentionTime } from '../engine/attention.ts';
import type { Engine } from '../page/connect.ts';
import { find, make } from '../page/dom.ts';
import { duration, figure } from '../page/format.ts';
import { runJob, showProblem } from '../page/job.ts';
import { latest } from '../page/latest.ts';
import { cellAt, drawMap, gridFor, type MapColors, shortened } from './attention-map.ts';

const typingPause = 120; // ms
const measuringPause = 1000;
const longestName = 20; // characters of a token in a text

/** A head's figure. */
interface HeadMap {
  name: string;
  figure: HTMLElement;
  button: HTMLButtonElement;
  box: HTMLElement;
  canvas: HTMLCanvasElement;
  caption: HTMLElement;
  /** Frames the row of the token, and the cell under the pointer. */
  row: HTMLElement;
  cell: HTMLElement;
}

/** A cell under the pointer, or a token, if there is no column. */
interface Hovered {
  row: number;
  column?: number;
  head?: number;
}

export async function start(section: HTMLElement, engine: Engine): Promise<void> {
  const input = find<HTMLInputElement>(section, '#attention-text');
  const tokenBox = find(section, '#attention-tokens');
  const allButton = find<HTMLButtonElement>(section, '#attention-all');
  const answer = find(section, '#attention-row');
  const again = find<HTMLButtonElement>(section, '#attention-again');
  const maps = [...section.querySelectorAll<HTMLElement>('#attention-maps figure')].map(mapOf);

  let result: Attention | undefined;
  let selected = 1;
  let hovered: Hovered | undefined;
  let mapWidth = 0; // CSS pixels
  /** Index of the chosen head; undefined for all. */
  let chosen: number | undefined;

  // --- numbers -----------------------------------------------------------------------------------

  const count = () => result?.tokens.length ?? 0;

  /** How much a token looks at another, in a head or on average over all. */
  const shareOf = (head: number | undefined, row: number, column: number): number => {
    const { heads, shares } = result!;
    const n = count();
    if (head !== undefined) return shares[(head * n + row) * n + column]!;
    let sum = 0;
    for (let h = 0; h < heads.length; ++h) sum += shares[(h * n + row) * n + column]!;
    return sum / heads.length;
  };

  /** A token as another one sees it. Tokens that are there twice have their place. */
  const nameOf = (at: number, from?: number): string => {
    const { tokens } = result!;
    if (at === from) return 'itself';
    const isAlone = tokens.every(
      (token, i) => i === at || token.toLowerCase() !== tokens[at]!.toLowerCase(),
    );
    const name = shortened(tokens[at]!, longestName);
    return isAlone ? name : `${name} (${ordinal(at + 1)})`;
  };

  /** "itself 50%, dog (13th) 50%": the largest shares first. */
  const sharesOf = (head: number | undefined, row: number, most: number): string => {
    const all = Array.from({ length: count() }, (_, column) => ({
      column,
      share: shareOf(head, row, column),
    }));
    // Those that look equal are in the order of the sentence.
    const rounded = ({ share }: { share: number }) => Math.round(100 * share);
    const seen = all
      .filter(({ share }) => share >= 0.01)
      .sort((a, b) => rounded(b) - rounded(a) || a.column - b.column);
    // A sentence of many tokens may leave less than 1% to each.
    const shown = (seen.length > 0 ? seen : all).slice(0, most);
    const texts = shown.map(({ column, share }) => `${nameOf(column, row)} ${percent(share)}`);
    return texts.join(', ') + (seen.length > most ? ', \u2026' : '');
  };

  const sentenceOf = (head: number | undefined, row: number): string =>
    `${head === undefined ? '' : `${maps[head]!.name}: `}${nameOf(row)} looks at ` +
    `${sharesOf(head, row, 8)}`;

  // --- what is shown -----------------------------------------------------------------------------

  const showTokens = () => {
    const tokens = result?.tokens ?? [];
    while (tokenBox.children.length > tokens.length) tokenBox.lastElementChild!.remove();
    while (tokenBox.children.length < tokens.length) {
      const button = make('button');
      button.type = 'button';
      button.append(make('span', '', 'attention-token'), make('span', '', 'attention-share'));
      tokenBox.append(button);
    }
    tokens.forEach((token, i) => {
      find(tokenBox.children[i]!, '.attention-token').textContent = token;
    });
  };

  let drawings = 0;

  /** Draws the maps, each in a task of its own, so that the page responds between them. */
  const showMaps = () => {
    if (!result) return;
    const drawing = ++drawings;
    const { tokens, shares } = result;
    const n = tokens.length;
    const colors = colorsOf(section);
    mapWidth = maps[0]!.box.clientWidth;
    const drawFrom = (head: number) => {
      if (drawing !== drawings || head === maps.length) return;
      const own = shares.subarray(head * n * n, (head + 1) * n * n);
      drawMap(maps[head]!.canvas, mapWidth, tokens, own, colors);
      setTimeout(() => drawFrom(head + 1));
    };
    drawFrom(0);
  };

  /** Shows the shares of the token that is hovered, or else selected. */
  const showLook = () => {
    const n = count();
    const at = hovered?.row ?? selected;
    const head = hovered?.head ?? chosen;
    allButton.setAttribute('aria-pressed', String(chosen === undefined));
    const { margin, cell } = gridFor(mapWidth, result?.tokens ?? []);
    [...tokenBox.children].forEach((child, i) => {
      const button = child as HTMLButtonElement;
      const share = shareOf(head, at, i);
      // The square root, so that small shares can be seen.
      button.style.setProperty('--shade', (0.5 * Math.sqrt(share)).toFixed(3));
      button.classList.toggle('looks', i === at);
      button.setAttribute('aria-pressed', String(i === selected));
      button.tabIndex = i === selected ? 0 : -1;
      setText(button.lastElementChild!, share >= 0.005 ? percent(share) : '\u00b7');
    });
    maps.forEach((map, index) => {
      map.button.setAttribute('aria-pressed', String(chosen === index));
      map.figure.classList.toggle('chosen', chosen === index);
      map.row.hidden = n === 0;
      map.cell.hidden = hovered?.column === undefined || hovered.head !== index;
      const text = n === 0 ? '' : sharesOf(index, at, 3);
      setText(map.caption, text);
      map.canvas.setAttribute(
        'aria-label',
        n === 0 ? `${map.name}: nothing to show` : `${map.name}: ${nameOf(at)} looks at ${text}`,
      );
      place(map.row, 0, margin + at * cell, margin + n * cell, cell);
      if (!map.cell.hidden)
        place(map.cell, margin + hovered!.column! * cell, margin + at * cell, cell, cell);
    });
    setText(answer, n === 0 ? '' : lookText(at, head));
  };

  const lookText = (at: number, head: number | undefined): string => {
    if (hovered?.column === undefined) return sentenceOf(head, at);
    const share = percent(shareOf(head, at, hovered.column));
    return `${maps[head!]!.name}: ${nameOf(at)} looks at ${nameOf(hovered.column, at)} ${share}`;
  };

  /** Says it to a screen reader: after a choice, and not for each move of the pointer. */
  const say = () => {
    find(section, '#attention-said').textContent = count() > 0 ? sentenceOf(chosen, selected) : '';
  };

  const select = (token: number) => {
    hovered = undefined;
    selected = token;
    showLook();
    say();
  };

  const choose = (head: number | undefined) => {
    chosen = head;
    showLook();
    say();
  };

  let isAsked = false;

  /** Shows what the pointer is on, at most once per frame. */
  const hover = (next: Hovered | undefined) => {
    if (
      next?.row === hovered?.row &&
      next?.column === hovered?.column &&
      next?.head === hovered?.head
    )
      return;
    hovered = next;
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      if (result) showLook();
    });
  };

  // --- the sentence ------------------------------------------------------------------------------

  let pause = 0;
  let measurePause = 0;

  /** Computes the sentence as it is now. A sentence that comes meanwhile is next. */
  const compute = latest(
    async (isStale) => {
      result = await engine.attend(input.value);
      if (isStale()) return;
      if (result.problem)
        showProblem(section, `${result.problem}. Plain JavaScript computes the maps.`);
      hovered = undefined;
      selected = Math.max(0, Math.min(selected, count() - 1));
      find(section, '#attention-count').textContent = countText(result);
      find(section, '#attention-said').textContent = '';
      showTokens();
      showMaps();
      showLook();
      again.disabled = count() === 0;
      section.dataset.sentence = input.value;
      measureLater();
    },
    (error) => {
      showProblem(section, error);
      measureLater();
    },
  );

  const measureLater = () => {
    clearTimeout(measurePause);
    measurePause = window.setTimeout(() => void measure(), measuringPause);
  };

  const measure = async () => {
    clearTimeout(measurePause);
    const sentence = input.value;
    const n = count();
    if (n === 0) return;
    const times = await runJob(section, 'Measuring', (report) =>
      engine.timeAttention(sentence, report),
    );
    if (times) showTimes(section, times, n);
  };

  input.addEventListener('input', () => {
    clearTimeout(pause);
    clearTimeout(measurePause);
    pause = window.setTimeout(() => void compute(), typingPause);
  });
  for (const example of section.querySelectorAll<HTMLButtonElement>('[data-sentence]')) {
    example.addEventListener('click', () => {
      clearTimeout(pause);
      input.value = example.dataset.sentence!;
      void compute();
    });
  }
  again.addEventListener('click', () => void measure());

  // --- tokens ------------------------------------------------------------------------------------

  const indexOf = (target: EventTarget | null): number =>
    [...tokenBox.children].findIndex((child) => child.contains(target as Node));

  tokenBox.addEventListener('pointerover', (event) => {
    const row = indexOf(event.target);
    if (event.pointerType !== 'touch' && row >= 0) hover({ row });
  });
  tokenBox.addEventListener('pointerleave', () => hover(undefined));
  tokenBox.addEventListener('click', (event) => {
    const token = indexOf(event.target);
    if (token >= 0) select(token);
  });
  tokenBox.addEventListener('keydown', (event) => {
    const last = count() - 1;
    const targets: Record<string, number> = {
      ArrowRight: Math.min(last, selected + 1),
      ArrowLeft: Math.max(0, selected - 1),
      Home: 0,
      End: last,
    };
    const next = targets[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    select(next);
    (tokenBox.children[next] as HTMLElement).focus();
  });

  // --- maps --------------------------------------------------------------------------------------

  allButton.addEventListener('click', () => choose(undefined));
  maps.forEach((map, head) => {
    map.button.addEventListener('click', () => choose(chosen === head ? undefined : head));
    const cellUnder = (event: MouseEvent) => {
      const { left, top, width } = map.box.getBoundingClientRect();
      const n = count();
      if (n === 0) return undefined;
      return cellAt(gridFor(width, result!.tokens), n, event.clientX - left, event.clientY - top);
    };
    map.box.addEventListener('pointermove', (event) => {
      if (event.pointerType === 'touch') return;
      const cell = cellUnder(event);
      hover(cell && { ...cell, head });
    });
    map.box.addEventListener('pointerleave', () => hover(undefined));
    map.box.addEventListener('click', (event) => {
      const cell = cellUnder(event);
      if (!cell) return;
      selected = cell.row;
      choose(head);
    });
  });
  new ResizeObserver(() => {
    if (maps[0]!.box.clientWidth === mapWidth) return;
    showMaps();
    if (result) showLook();
  }).observe(maps[0]!.box);
  document.addEventListener('theme', showMaps);

  await compute();
}

function mapOf(figure: HTMLElement): HeadMap {
  const button = find<HTMLButtonElement>(figure, 'button');
  const box = find(figure, '.attention-map');
  const [row, cell] = [make('div', '', 'attention-mark'), make('div', '', 'attention-mark')];
  row.hidden = cell.hidden = true;
  box.append(row, cell);
  return {
    name: button.textContent.trim(),
    figure,
    button,
    box,
    canvas: find<HTMLCanvasElement>(figure, 'canvas'),
    caption: find(figure, 'p'),
    row,
    cell,
  };
}

function colorsOf(section: HTMLElement): MapColors {
  const style = getComputedStyle(section);
  const color = (name: string) => style.getPropertyValue(name).trim();
  return { accent: color('--accent'), soft: color('--attention-cell'), text: color('--text-2') };
}

function place(mark: HTMLElement, x: number, y: number, width: number, height: number): void {
  mark.style.transform = `translate(${x - 1}px, ${y - 1}px)`;
  mark.style.width = `${width + 1}px`;
  mark.style.height = `${height + 1}px`;
}

/** Texts that stay are not written: the browser would lay them out again. */
function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

const percent = (share: number): string => `${Math.round(100 * share)}%`;

function ordinal(n: number): string {
  const isTeen = n % 100 > 10 && n % 100 < 14;
  return `${n}${(isTeen ? undefined : ['', 'st', 'nd', 'rd'][n % 10]) || 'th'}`;
}

const plural = (n: number) => (n === 1 ? '1 token' : `${n} tokens`);

function countText({ tokens, count, most }: Attention): string {
  if (count === 0) return 'Write a few words, and the maps show them.';
  const text = `${plural(tokens.length)} (words and marks), ${most} at most`;
  return count > most ? `${text}: the last ${count - most} are left out` : text;
}

function showTimes(section: HTMLElement, times: AttentionTime[], tokens: number): void {
  find(section, '#attention-for').textContent =
    `Six heads of 32, for ${plural(tokens)}: six products and softmax.`;
  const all = times.map(({ ms }) => ms / 1000);
  const slow = times.find(({ id }) => id === 'javascript')!.ms;
  for (const line of section.querySelectorAll<HTMLElement>('#attention-times tbody tr')) {
    const time = times.find(({ id }) => id === line.dataset.id);
    const isPlain = line.dataset.id === 'javascript';
    const texts = time
      ? [
          duration(time.ms / 1000, all),
          `${figure(slow / time.ms)} x`,
          isPlain ? '-' : time.difference.toExponential(0),
        ]
      : ['-', '-', '-'];
    [...line.querySelectorAll('td')].forEach((cell, i) => {
      cell.textContent = texts[i]!;
    });
  }
}
