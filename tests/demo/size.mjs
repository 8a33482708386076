// Tests of the sliders, the curve and the picture of the plan.
import { refuse } from '../package/results.mjs';
import { cancel } from './jobs.mjs';

/** Waits until a sweep has ended as it should; returns the sizes and figures of the curve. */
async function untilSwept(tab, state = 'done') {
  await tab.waitFor(
    `the sweep is ${state}`,
    (state) => document.querySelector('#size').dataset.sweep === state,
    { args: [state] },
  );
  return tab.evaluate(() => {
    const rows = [...document.querySelectorAll('#size-points tr')].map(({ cells }) =>
      [...cells].map((cell) => cell.textContent),
    );
    return { head: rows[0], rows: rows.slice(1) };
  });
}

const noticeOf = (tab) =>
  tab.evaluate(() => {
    const notice = document.querySelector('#size .notice');
    return notice.hidden ? '' : notice.textContent;
  });

/** The part says it there if two contestants disagree. */
async function expectNoNotice(tab) {
  const says = await noticeOf(tab);
  if (says) refuse(`it says: ${says}`);
}

const titleOf = (tab) => tab.textOf('#size-now-title');

async function retypeSize(tab, axis, size) {
  await tab.retype(`#size-${axis}-number`, String(size));
  await tab.press('Enter');
}

/** Sizes that a sweep has time for on any machine. */
const fewest = 3;

export async function testSize(test, tab) {
  await test('measures a curve, with all results equal', async () => {
    const { head, rows } = await untilSwept(tab);
    if (!/wgemm/.test(head[1]) || !/JavaScript/.test(head[2])) refuse(`the lines are ${head}`);
    // A busy machine measures fewer sizes, and leaves out the largest.
    const measured = rows.filter(([, own]) => /^[\d.,]+$/.test(own));
    if (measured.length < fewest) refuse(`the speeds are ${rows.join('; ') || 'none'}`);
    if (!measured.some(([, own]) => Number(own) > 1)) refuse(`the speeds are ${rows.join('; ')}`);
    await tab.untilDrawn('#size-chart canvas', 6);
    await expectNoNotice(tab);
    return `${rows.length} points`;
  });
  await test('says what it leaves out, and has room for that', async () => {
    await retypeSize(tab, 'm', 1024);
    await tab.waitFor('an estimate', () =>
      document.querySelector('#size-now').textContent.includes('not measured'),
    );
    const overflow = await tab.overflow();
    if (overflow) refuse(`the page scrolls sideways by ${overflow}`);
  });
  await test('moves locked sizes together, by slider, number and keyboard', async () => {
    await retypeSize(tab, 'm', 64);
    if (!/= 64 [x×] 64 [x×] 64$/.test(await titleOf(tab))) refuse(`it is ${await titleOf(tab)}`);
    await tab.click('#size-n-lock');
    await tab.click('#size-k-lock');
    await tab.evaluate(() => document.querySelector('#size-m').focus());
    for (let i = 0; i < 8; ++i) await tab.press('ArrowRight'); // an octave
    if (!/= 128 [x×] 64 [x×] 64$/.test(await titleOf(tab))) refuse(`it is ${await titleOf(tab)}`);
  });
  await test('ends a sweep when a size changes', async () => {
    await tab.waitFor('a sweep', () => !document.querySelector('#size .job').hidden);
    await retypeSize(tab, 'm', 100);
    const { rows } = await untilSwept(tab);
    const others = rows.filter(([size]) => !/ [x×] 64 [x×] 64$/.test(size));
    if (others.length > 0) refuse(`the curve has ${others.map(([size]) => size).join(', ')}`);
    if (!rows.some(([size]) => /^100 [x×] 64 [x×] 64$/.test(size)))
      refuse('the chosen size is missing');
    await expectNoNotice(tab);
  });
  await test('cancels', async () => {
    await tab.click('#size-again');
    await cancel(tab, 'size');
    await untilSwept(tab, 'cancelled');
    if (!/^Stopped/.test(await tab.textOf('#size-status'))) refuse('it does not say so');
  });
  await test('draws the plan of the size', async () => {
    const before = await tab.textOf('#size-facts');
    const label = await tab.evaluate(() =>
      document.querySelector('#size-picture svg[role=img]')?.getAttribute('aria-label'),
    );
    if (!label) refuse('there is no picture with words');
    if (!/kernel/i.test(before)) refuse(`the facts are: ${before}`);
    await retypeSize(tab, 'm', 1);
    await tab.waitFor(
      'another plan',
      (before) => document.querySelector('#size-facts').innerText !== before,
      { args: [before] },
    );
    const rectangles = await tab.evaluate(
      () => document.querySelectorAll('#size-picture svg :is(rect, path)').length,
    );
    if (rectangles < 3) refuse(`the picture has ${rectangles} shapes`);
    if (!/GEMV/i.test(await tab.textOf('#size-facts')))
      refuse(`M = 1 is not a GEMV: ${await tab.textOf('#size-facts')}`);
  });
  await test('measures other types and transposes', async () => {
    await retypeSize(tab, 'm', 64);
    await tab.click('#size-tb');
    await tab.select('#size-type', 'int8');
    const { rows } = await untilSwept(tab); // it measures again after it was cancelled
    if (rows.length < fewest) refuse(`the curve has ${rows.length} points`);
    await expectNoNotice(tab);
    await tab.select('#size-type', 'bfloat16');
    const { head } = await untilSwept(tab);
    if (head.some((name) => /JavaScript/.test(name))) refuse(`bfloat16 has ${head}`);
    if (!/no line/.test(await tab.textOf('#size-note'))) refuse('it does not say why');
    await expectNoNotice(tab);
    await tab.select('#size-type', 'float32');
    await tab.click('#size-tb');
  });
}

/** Peers were fetched: their lines are on the curve. */
export async function testSizeWithPeers(test, tab) {
  await test('measures the peers that were fetched', async () => {
    await tab.reveal('#size');
    const { head } = await untilSwept(tab);
    if (!/tfjs/.test(head) || !/ONNX Runtime Web/.test(head)) refuse(`the lines are ${head}`);
    await expectNoNotice(tab);
  });
}
