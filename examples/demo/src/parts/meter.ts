/** The meter: a needle, a table, the peers, and the results as Markdown. */
import type { Facts, MeterRow } from '../engine/meter.ts';
import type { PeerFacts, PeerName } from '../engine/peers.ts';
import type { Report } from '../engine/report.ts';
import type { Engine } from '../page/connect.ts';
import { draw, find, make } from '../page/dom.ts';
import { browserName } from '../page/browser.ts';
import { copyText } from '../page/clipboard.ts';
import { bytes, duration, figure, threadsOf } from '../page/format.ts';
import { idle } from '../page/idle.ts';
import { runJob, showProblem } from '../page/job.ts';

/** The libraries that were fetched. */
const peers: PeerFacts[] = [];

export async function start(section: HTMLElement, engine: Engine): Promise<void> {
  const button = (name: string) => find<HTMLButtonElement>(section, `#meter-${name}`);
  const [again, tfjs, ort, copy] = [button('again'), button('tfjs'), button('ort'), button('copy')];
  drawTicks(section, scaleFor(0));
  await idle(1000);
  let facts: Facts;
  try {
    facts = await engine.facts();
  } catch (error) {
    showProblem(section, error);
    return;
  }
  find(section, '#meter-why').textContent = words(facts);
  let rows: MeterRow[] = [];

  const failed = new Set<PeerName>();
  const isBusy = (busy: boolean) => {
    const isOver = (name: PeerName) => failed.has(name) || peers.some((peer) => peer.name === name);
    again.disabled = busy;
    tfjs.disabled = busy || isOver('tfjs');
    ort.disabled = busy || isOver('ort');
    copy.disabled = busy || rows.length === 0;
  };
  const measure = async () => {
    isBusy(true);
    rows = [];
    showRows(section, rows);
    await runJob<unknown, MeterRow>(
      section,
      'Measuring',
      (report) => engine.measure(report),
      (row) => {
        rows.push(row);
        showRows(section, rows);
      },
    );
    isBusy(false);
  };
  const compare = async (name: PeerName, title: string) => {
    isBusy(true);
    const status = find(section, '#meter-peers');
    const fetching = engine.fetchPeer(name, facts.threads).catch((error: Error) => {
      const again = 'To try again, load the page again.'; // its code keeps the failed state
      throw new Error(`${title} does not start here: ${error.message}. ${again}`);
    });
    const peer = await runJob<PeerFacts | undefined>(section, `Fetching ${title}`, (report) =>
      unlessCancelled(fetching, report),
    );
    if (peer) {
      peers.push(peer);
      status.textContent = peers.map((each) => sentenceOf(each, facts.threads)).join(' ');
      document.dispatchEvent(new Event('peer'));
      await measure();
      return;
    }
    isBusy(false);
    // It was cancelled, or failed.
    fetching.then(
      () => engine.dropPeer(name),
      () => failed.add(name) && isBusy(again.disabled),
    );
  };
  again.addEventListener('click', () => void measure());
  tfjs.addEventListener('click', () => void compare('tfjs', 'tfjs'));
  ort.addEventListener('click', () => void compare('ort', 'ONNX Runtime Web'));
  copy.addEventListener('click', () => void copyResults(section, facts, rows));
  await measure();
}

/** The columns: every contestant of any row. A peer has no figure for some types. */
const namesIn = (rows: MeterRow[]): string[] => [
  ...new Set(['wgemm', ...rows.flatMap(({ figures }) => Object.keys(figures))]),
];

/** What a promise brings; undefined if the visitor cancels first. */
async function unlessCancelled<T>(promise: Promise<T>, report: Report): Promise<T | undefined> {
  let isSettled = false;
  const settled = promise.finally(() => (isSettled = true));
  const cancelled = (async () => {
    while (!isSettled && (await report(0)))
      await new Promise((resolve) => setTimeout(resolve, 100));
    return undefined;
  })();
  return Promise.race([settled, cancelled]);
}

const sentenceOf = (
  { title, version, bytes: count, ms, threads }: PeerFacts,
  ours: number,
): string =>
  `${title} ${version} is ${bytes(count)}, and took ${duration(ms / 1000)} to start. It runs on ` +
  `${threadsOf(threads)}` +
  (threads < ours ? ': its threads need workers of a kind that this page forbids.' : '.');

/** `info.why`, and the facts next to it, as sentences. */
function words({ version, build, threads, why, processors, isInPage }: Facts): string {
  const inPage = 'threads: one, since the page itself computes';
  return (
    `wgemm ${version} runs its build ${build} on ${threadsOf(threads)} of ${processors} logical ` +
    `processors. Why: ${isInPage ? why.replace(/threads: .*/, inPage) : why}.`
  );
}

// --- the needle ----------------------------------------------------------------------------------

/** The end of the scale: the first of 50, 100, 200, 500 ... above the figure. */
function scaleFor(value: number): number {
  for (let decade = 10; ; decade *= 10)
    for (const step of [2, 5, 10])
      if (step * decade > value && step * decade >= 50) return step * decade;
}

function showFigure(section: HTMLElement, value: number): void {
  const scale = scaleFor(value);
  drawTicks(section, scale);
  const part = value / scale;
  find(section, '#meter-figure').textContent = figure(value);
  const gauge = find(section, '.gauge');
  gauge.style.setProperty('--turn', `${180 * part - 90}deg`);
  gauge.style.setProperty('--part', `${100 * part}`);
}

function drawTicks(section: HTMLElement, scale: number): void {
  const ticks = section.querySelector('.gauge-ticks')!;
  const count = 5;
  ticks.replaceChildren(
    ...Array.from({ length: count + 1 }, (_, i) => {
      const angle = Math.PI * (1 - i / count);
      const at = { x: 120 + 78 * Math.cos(angle), y: 124 - 78 * Math.sin(angle) };
      return draw('text', at, String((scale * i) / count));
    }),
  );
}

// --- the table -----------------------------------------------------------------------------------

function showRows(section: HTMLElement, rows: MeterRow[]): void {
  const table = find(section, '#meter-table');
  const head = make('tr');
  const names = namesIn(rows);
  for (const name of ['product', ...names]) {
    const cell = make('th', name);
    cell.scope = 'col';
    head.append(cell);
  }
  find(table, 'thead').replaceChildren(head);
  find(table, 'tbody').replaceChildren(
    ...rows.map(({ id, title, unit, figures }) => {
      const line = make('tr');
      line.dataset.id = id;
      const first = make('th', title);
      first.scope = 'row';
      line.append(first, ...names.map((name) => make('td', cellOf(figures[name], unit))));
      return line;
    }),
  );
  const first = rows.find(({ id }) => id === 'float32');
  if (first) showFigure(section, first.figures.wgemm!);
}

const cellOf = (value: number | undefined, unit: string) =>
  value === undefined ? '-' : `${figure(value)} ${unit}`;

// --- the clipboard -------------------------------------------------------------------------------

/** The results as a table in Markdown, with what they depend on. */
function markdownOf({ version, build, threads }: Facts, rows: MeterRow[]): string {
  const date = new Date().toISOString().slice(0, 10);
  const names = namesIn(rows);
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`;
  return [
    `wgemm ${version}, build ${build}, ${threadsOf(threads)}, ${browserName()}, ${date}` +
      peers
        .map(({ title, version, threads: count }) => `; ${title} ${version}, ${threadsOf(count)}`)
        .join(''),
    '',
    line(['product', ...names]),
    line(['---', ...names.map(() => '---:')]),
    ...rows.map(({ title, unit, figures }) =>
      line([title, ...names.map((name) => cellOf(figures[name], unit))]),
    ),
    '',
  ].join('\n');
}

async function copyResults(section: HTMLElement, facts: Facts, rows: MeterRow[]): Promise<void> {
  const text = markdownOf(facts, rows);
  const details = find<HTMLDetailsElement>(section, '#meter-text');
  const area = find<HTMLTextAreaElement>(details, 'textarea');
  details.hidden = false;
  area.value = text;
  const isCopied = await copyText(text);
  if (!isCopied) details.open = true;
  find(section, '#meter-copied').textContent = isCopied
    ? 'Copied.'
    : 'This browser does not let the page copy: select the text below.';
  if (!isCopied) area.select();
}
