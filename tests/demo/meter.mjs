// Tests of the meter, and of the peers that it fetches.
import { desktop, phone } from '../browser/tabs.mjs';
import { refuse } from '../package/results.mjs';
import { expectSooner, untilJobEnds } from './jobs.mjs';

const titles = { chromium: /Chrome \d/, firefox: /Firefox \d/, webkit: /WebKitGTK \d/ };
const products = ['float32', 'uint8 x int8', 'bfloat16', 'GEMV'];

/** The table as it is shown: the head, then each row. Cells of peers also have a ratio. */
const tableOf = (tab) =>
  tab.evaluate(() =>
    [...document.querySelectorAll('#meter-table tr')].map((row) =>
      [...row.cells].map((cell) => cell.innerText.split('\n')[0].trim()),
    ),
  );

const ratiosOf = (tab) =>
  tab.evaluate(() =>
    [...document.querySelectorAll('#meter-table td span')].map((span) => span.textContent),
  );

/** Waits until the meter has measured, and its job is hidden. */
const untilMeasured = (tab, rows) =>
  tab.waitFor(
    `the meter measures ${rows} rows`,
    (rows) => {
      const body = document.querySelector('#meter-table').tBodies[0];
      return (
        !document.querySelector('#meter-again').disabled &&
        document.querySelector('#meter .job').hidden &&
        body.rows.length === rows &&
        body.rows[0].cells[4].textContent !== '-'
      );
    },
    { args: [rows], timeout: 60_000 },
  );

const isFigure = (text) => /^[\d.,]+$/.test(text) && Number.parseFloat(text) > 0;

/** Checks the table; returns the rows. Every other contestant has at least float32. */
async function checkTable(tab, names) {
  const [head, ...rows] = await tableOf(tab);
  if (head.slice(1).join() !== products.join()) refuse(`the columns are ${head.join()}`);
  const found = rows.map(([name]) => name);
  if (found.join() !== names.join()) refuse(`the rows are ${found.join()}`);
  for (const [name, ...figures] of rows) {
    const isOwn = name.startsWith('wgemm');
    figures.forEach((text, i) => {
      if (!isFigure(text) && (isOwn || text !== '-' || i === 0 || i === 3))
        refuse(`${name} has ${text} for ${products[i]}`);
    });
  }
  const ratios = await ratiosOf(tab);
  if (!ratios.every((text) => /^[\d.,]+ x$/.test(text))) refuse(`the ratios are ${ratios}`);
  return rows;
}

/** Fails if a part of the table is out of sight. */
async function expectWhole(tab) {
  const wide = await tab.evaluate(() => {
    const { right } = document.querySelector('#meter-table').getBoundingClientRect();
    return right > document.documentElement.clientWidth ? right : 0;
  });
  if (wide) refuse(`the table ends at ${wide} pixels`);
}

const own = ['wgemm', 'JavaScript'];

export async function testMeter(test, tab, { isIsolated }) {
  await test('measures', async () => {
    await untilMeasured(tab, own.length);
    const [[, ours], [, theirs]] = await checkTable(tab, own);
    const figure = await tab.textOf('#figure-own');
    if (figure !== ours) refuse(`the needle shows ${figure}, not ${ours}`);
    const times = await tab.textOf('#figure-times');
    const numberIn = (text) => Number.parseFloat(text.replaceAll(',', ''));
    const expected = numberIn(ours) / numberIn(theirs);
    // The figures of the table are rounded.
    if (!(Math.abs(numberIn(times) / expected - 1) < 0.1))
      refuse(`the figure shows ${times}, not ${expected}`);
    const says = await tab.textOf('#figure-threads');
    const [, threads, each = times] =
      /^(\d+) threads? against one loop(?:: ([\d.,]+) times per thread)?$/.exec(says) ??
      refuse(`it says: ${says}`);
    if (!(Math.abs((numberIn(each) * Number(threads)) / numberIn(times) - 1) < 0.01))
      refuse(`it shows ${times}, and says: ${says}`);
    const heads = await tab.evaluate(() =>
      [...document.querySelectorAll('#meter-table tbody th')].map(({ innerText }) =>
        innerText.trim(),
      ),
    );
    if (heads.join('; ') !== `wgemm\n${/^\d+ threads?/.exec(says)}; JavaScript\none loop`)
      refuse(`the rows are ${heads.join('; ')}`);
    const turn = await tab.evaluate(() =>
      Number.parseFloat(document.querySelector('.gauge').style.getPropertyValue('--turn')),
    );
    if (!(turn > -90 && turn < 90)) refuse(`the needle stands at ${turn} degrees`);
    return `${figure}, ${times}`;
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
    const cancelled = await untilJobEnds(tab, 'meter');
    const [, first] = await tableOf(tab);
    if (isFigure(first.at(-1))) refuse('the meter measured everything after it was cancelled');
    await tab.click('#meter-again');
    const whole = await untilJobEnds(tab, 'meter');
    await untilMeasured(tab, own.length);
    await checkTable(tab, own);
    expectSooner(cancelled, whole);
  });
  await test('copies what it shows', () => checkCopy(tab));
}

/** Presses the button, and compares the clipboard with the table. */
async function checkCopy(tab) {
  const [, ...rows] = await tableOf(tab);
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
  await untilMeasured(tab, own.length);
  // tfjs has one thread under this policy, so wgemm on one thread races it.
  const isThreaded = !/ on 1 thread /.test(await tab.textOf('#meter-why'));
  const shown = isIsolated && isThreaded ? ['wgemm', 'wgemm, 1 thread', 'JavaScript'] : [...own];
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
      await expectWhole(tab);
      return `${size} ${unit}, ${time}, ${rows.map((row) => row[1]).join(', ')}`;
    });
  }
  await test('copies the peers too', () => checkCopy(tab));
  if (isIsolated)
    await test('shows both peers on the screen of a phone', async () => {
      await tab.setViewport(phone);
      try {
        await expectWhole(tab);
      } finally {
        await tab.setViewport(desktop);
      }
    });
}
