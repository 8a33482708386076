/** The meter: a table of speeds, the peers, and the results as Markdown. */
import type { Facts, MeterFigures } from '../engine/meter.ts';
import type { PeerFacts, PeerName } from '../engine/peers.ts';
import type { Report } from '../engine/report.ts';
import type { Engine } from '../page/connect.ts';
import { find, make } from '../page/dom.ts';
import { browserName } from '../page/browser.ts';
import { copyText } from '../page/clipboard.ts';
import { bytes, duration, figure, threadsOf } from '../page/format.ts';
import { runJob, showProblem } from '../page/job.ts';
import { showFigure } from './figure.ts';

/** The libraries that were fetched. */
const peers: PeerFacts[] = [];

export async function start(section: HTMLElement, engine: Engine): Promise<void> {
  const button = (name: string) => find<HTMLButtonElement>(section, `#meter-${name}`);
  const [again, tfjs, ort, copy] = [button('again'), button('tfjs'), button('ort'), button('copy')];
  let facts: Facts;
  try {
    facts = await engine.facts();
  } catch (error) {
    showProblem(section, error);
    return;
  }
  find(section, '#meter-why').textContent = words(facts);
  let products: MeterFigures[] = [];

  const failed = new Set<PeerName>();
  const isBusy = (busy: boolean) => {
    const isOver = (name: PeerName) => failed.has(name) || peers.some((peer) => peer.name === name);
    again.disabled = busy;
    tfjs.disabled = busy || isOver('tfjs');
    ort.disabled = busy || isOver('ort');
    copy.disabled = busy || products.length === 0;
  };
  const measure = async () => {
    isBusy(true);
    products = [];
    showTable(section, products, facts.threads);
    await runJob<unknown, MeterFigures>(
      section,
      'Measuring',
      (report) => engine.measure(report),
      (product) => {
        products.push(product);
        showTable(section, products, facts.threads);
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
  copy.addEventListener('click', () => void copyResults(section, facts, products));
  await measure();
}

/** The rows, in this order: every contestant that was measured so far. */
function namesIn(products: MeterFigures[]): string[] {
  for (const { figures } of products) for (const name of Object.keys(figures)) measured.add(name);
  const isOwn = (name: string) => name.startsWith(ours);
  const others = [...measured].filter((name) => !isOwn(name) && name !== 'JavaScript');
  return [...[...measured].filter(isOwn), 'JavaScript', ...others];
}

const ours = 'wgemm';
const measured = new Set([ours]);

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

// --- the table -----------------------------------------------------------------------------------

/** The products of the columns, as index.html has them. */
const columnsOf = (section: HTMLElement) =>
  [...section.querySelectorAll<HTMLElement>('#meter-table th[data-id]')].map(({ dataset }) => ({
    id: dataset.id!,
    title: dataset.title!,
  }));

function showTable(section: HTMLElement, products: MeterFigures[], threads: number): void {
  find(section, '#meter-table tbody').replaceChildren(
    ...namesIn(products).map((name) => {
      const line = make('tr');
      const first = make('th', name);
      first.scope = 'row';
      first.append(make('span', whatRuns(name, threads)));
      line.append(
        first,
        ...columnsOf(section).map(({ id }) => {
          const { value, times } = cellOf(products, id, name);
          const cell = make('td', value);
          if (times) cell.append(make('span', times));
          return cell;
        }),
      );
      return line;
    }),
  );
  const { figures } = products.find(({ id }) => id === 'float32') ?? {};
  if (figures) showFigure({ wgemm: figures[ours]!, threads, javascript: figures.JavaScript });
}

/** The threads of a row; '' if its name states them. */
function whatRuns(name: string, threads: number): string {
  if (name === ours) return threadsOf(threads);
  if (name === 'JavaScript') return 'one loop';
  const peer = peers.find(({ title }) => title === name);
  return peer ? threadsOf(peer.threads) : '';
}

/** A figure, and how many times as fast wgemm is. A row on one thread counts wgemm on one. */
function cellOf(products: MeterFigures[], id: string, name: string) {
  const figures = products.find((product) => product.id === id)?.figures ?? {};
  const value = figures[name];
  if (value === undefined) return { value: '-', times: '' };
  const isSingle = name.endsWith(', 1 thread');
  const own = figures[isSingle ? `${ours}, 1 thread` : ours]!;
  return {
    value: figure(value),
    times: name.startsWith(ours) ? '' : `${figure(own / value)} x`,
  };
}

// --- the clipboard -------------------------------------------------------------------------------

/** The results as a table in Markdown, with what they depend on. */
function markdownOf(
  section: HTMLElement,
  { version, build, threads }: Facts,
  products: MeterFigures[],
): string {
  const date = new Date().toISOString().slice(0, 10);
  const columns = columnsOf(section);
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`;
  return [
    `wgemm ${version}, build ${build}, ${threadsOf(threads)}, ${browserName()}, ${date}` +
      peers
        .map(({ title, version, threads: count }) => `; ${title} ${version}, ${threadsOf(count)}`)
        .join(''),
    '',
    line(['computed by', ...columns.map(({ title }) => title)]),
    line(['---', ...columns.map(() => '---:')]),
    ...namesIn(products).map((name) =>
      line([name, ...columns.map(({ id }) => cellOf(products, id, name).value)]),
    ),
    '',
  ].join('\n');
}

async function copyResults(
  section: HTMLElement,
  facts: Facts,
  products: MeterFigures[],
): Promise<void> {
  const text = markdownOf(section, facts, products);
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
