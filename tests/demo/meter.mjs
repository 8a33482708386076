// Tests of the meter, and of the peers that it fetches.
import { refuse } from '../package/results.mjs';
import { expectSooner } from './browsers.mjs';

const titles = { chromium: /Chrome \d/, firefox: /Firefox \d/, webkit: /WebKitGTK \d/ };
const products = [
  ['float32, 512 x 512 x 512', 'GOP/s'],
  ['uint8 x int8, 512 x 512 x 512', 'GOP/s'],
  ['bfloat16, 512 x 512 x 512', 'GOP/s'],
  ['float32 GEMV, 1 x 4096 x 4096', 'GB/s'],
];

/** The table as it is shown: the head, then each row. */
const tableOf = (tab) =>
  tab.evaluate(() =>
    [...document.querySelectorAll('#meter-table tr')].map((row) =>
      [...row.cells].map((cell) => cell.innerText),
    ),
  );

/** Waits until the meter has measured, and its job is hidden. */
const untilMeasured = (tab, columns) =>
  tab.waitFor(
    `the meter measures ${columns} columns`,
    (columns, rows) => {
      const table = document.querySelector('#meter-table');
      return (
        !document.querySelector('#meter-again').disabled &&
        document.querySelector('#meter .job').hidden &&
        table.tBodies[0].rows.length === rows &&
        table.tHead.rows[0].cells.length === columns + 1
      );
    },
    { args: [columns, products.length], timeout: 60_000 },
  );

/** Checks the table; returns the figures of each row as text. A peer has at least float32. */
async function checkTable(tab, names) {
  const [head, ...rows] = await tableOf(tab);
  if (head.join() !== ['product', ...names].join()) refuse(`the columns are ${head.join()}`);
  if (rows.length !== products.length) refuse(`the meter has ${rows.length} rows`);
  rows.forEach(([title, own, ...others], i) => {
    const [wanted, unit] = products[i];
    const isFigure = (text) =>
      new RegExp(`^[\\d.,]+ ${unit}$`).test(text) && Number.parseFloat(text) > 0;
    if (title !== wanted) refuse(`row ${i} is ${title}`);
    if (!isFigure(own)) refuse(`${title}: wgemm has ${own}`);
    if (!others.every((text) => isFigure(text) || (text === '-' && !title.startsWith('float32'))))
      refuse(`${title}: the peers have ${others.join()}`);
  });
  return rows;
}

export async function testMeter(test, tab, { isIsolated }) {
  await test('measures', async () => {
    await untilMeasured(tab, 1);
    const rows = await checkTable(tab, ['wgemm']);
    const figure = await tab.textOf('#meter-figure');
    if (`${figure} GOP/s` !== rows[0][1]) refuse(`the needle shows ${figure}, not ${rows[0][1]}`);
    const turn = await tab.evaluate(() =>
      Number.parseFloat(document.querySelector('.gauge').style.getPropertyValue('--turn')),
    );
    if (!(turn > -90 && turn < 90)) refuse(`the needle stands at ${turn} degrees`);
    return figure;
  });
  await test('says what it runs on', async () => {
    const says = await tab.textOf('#meter-why');
    const facts = await tab.evaluate(() => ({
      processors: navigator.hardwareConcurrency,
      isShared: crossOriginIsolated && typeof SharedArrayBuffer === 'function',
    }));
    if (facts.isShared !== isIsolated) refuse(`shared memory: ${facts.isShared}`);
    const [, build, threads] =
      /build (\S+) on (\d+) thread/.exec(says) ?? refuse(`it says: ${says}`);
    if (build !== (tab.engine === 'webkit' ? 'simd128' : 'relaxed')) refuse(`it is ${build}`);
    if (Number(threads) > 1 !== (isIsolated && facts.processors > 1))
      refuse(`${threads} threads of ${facts.processors} processors, isolated: ${isIsolated}`);
    if (!/Why: .*build: .*threads: ./.test(says)) refuse(`it says no reason: ${says}`);
    return `${build}, ${threads}`;
  });
  await test('cancels, and measures again', async () => {
    await tab.click('#meter-again');
    await tab.click('#meter .job button');
    const cancelled = await tab.untilJobEnds('meter');
    const { length } = await tableOf(tab);
    if (length > products.length) refuse('the meter measured all rows after it was cancelled');
    await tab.click('#meter-again');
    const whole = await tab.untilJobEnds('meter');
    await untilMeasured(tab, 1);
    await checkTable(tab, ['wgemm']);
    expectSooner(cancelled, whole);
  });
  await test('copies what it shows', () => checkCopy(tab));
}

/** Presses the button, and compares the clipboard with the table. */
async function checkCopy(tab) {
  const rows = await tableOf(tab);
  await tab.evaluate(() => (document.querySelector('#meter-copied').textContent = ''));
  await tab.click('#meter-copy');
  const said = await tab.waitFor(
    'the meter copies',
    () => document.querySelector('#meter-copied').textContent,
  );
  const isCopied = said === 'Copied.';
  const text = isCopied
    ? await tab.paste()
    : await tab.evaluate(() => document.querySelector('#meter-text textarea').value);
  const lines = text.split('\n');
  const [, version, build, threads] =
    /^wgemm (\S+) runs its build (\S+) on (\d+ threads?)/.exec(await tab.textOf('#meter-why')) ??
    [];
  const first = `wgemm ${version}, build ${build}, ${threads}, `;
  if (!lines[0].startsWith(first)) refuse(`the clipboard starts with ${lines[0]}, not ${first}`);
  if (!titles[tab.engine].test(lines[0])) refuse(`the browser is missing in ${lines[0]}`);
  const days = [0, 1].map((ago) => new Date(Date.now() - 864e5 * ago).toISOString().slice(0, 10));
  if (!days.some((day) => lines[0].includes(day))) refuse(`the date is missing in ${lines[0]}`);
  for (const row of rows)
    if (!lines.includes(`| ${row.join(' | ')} |`))
      refuse(`the clipboard has no row ${row.join(' | ')}:\n${text}`);
  return isCopied ? 'by the clipboard' : 'from the text area';
}

const peers = [
  { id: 'tfjs', title: 'tfjs', files: /^(peer-)?tfjs-/ },
  { id: 'ort', title: 'ONNX Runtime Web', files: /^(peer-)?ort-/ },
];
const isOf = ({ files }, path) => files.test(path.split('/').pop());

/** Fails if files of peers are among the paths that were asked for. */
export function expectNoPeers(paths) {
  const found = paths.filter((path) => peers.some((peer) => isOf(peer, path)));
  if (found.length > 0) refuse(`the page fetched ${found.join()} before it was asked to`);
}

/**
 * Without isolation only one of them, to save time: tfjs has one thread in any case.
 *
 * @param demo its files
 */
export async function testPeers(test, tab, { demo, isIsolated }) {
  await untilMeasured(tab, 1);
  // tfjs has one thread under this policy, so wgemm on one thread races it.
  const isThreaded = !/ on 1 thread /.test(await tab.textOf('#meter-why'));
  const shown = isIsolated && isThreaded ? ['wgemm', 'wgemm, 1 thread'] : ['wgemm'];
  for (const peer of isIsolated ? peers : peers.filter(({ id }) => id === 'ort')) {
    const { id, title } = peer;
    await test(`fetches ${title} when asked`, async () => {
      const before = tab.server.requested();
      if (before.some(({ path }) => isOf(peer, path))) refuse('it was fetched before');
      await tab.click(`#meter-${id}`);
      shown.push(id === 'tfjs' && isThreaded ? `${title}, 1 thread` : title);
      await untilMeasured(tab, shown.length);
      const rows = await checkTable(tab, shown);
      const fetched = new Set(tab.server.requested(before.length).map(({ path }) => path));
      const own = [...fetched].filter((path) => isOf(peer, path));
      if (own.length === 0) refuse('no file of it was fetched');
      const says = await tab.textOf('#meter-peers');
      const sentence = says.slice(says.indexOf(`${title} `));
      const [, size, unit, time] =
        /^.* is ([\d.,]+) (kB|MB), and took ([\d.,]+ (?:ms|s)) to start\./.exec(
          sentence.slice(0, sentence.indexOf(' It runs')),
        ) ?? refuse(`it says: ${says}`);
      const told = Number(size.replace(',', '')) * (unit === 'kB' ? 1e3 : 1e6);
      const sent = own.reduce((sum, path) => sum + demo[path].length, 0);
      if (Math.abs(told - sent) > 0.1 * sent)
        refuse(`it says ${told} bytes; the server sent ${sent}: ${own.join()}`);
      return `${size} ${unit}, ${time}, ${rows[0].slice(1).join(', ')}`;
    });
  }
  await test('copies the peers too', () => checkCopy(tab));
}
