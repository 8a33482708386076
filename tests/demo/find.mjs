// Tests of the search for the nearest vectors.
import { setTimeout as sleep } from 'node:timers/promises';
import { refuse } from '../package/results.mjs';
import { expectSooner } from './browsers.mjs';

const stateOf = (tab) =>
  tab.evaluate(() => {
    const list = document.querySelector('#find-list');
    const text = (name) => document.querySelector(`#find-${name}`).textContent;
    const agreement = (form) => document.querySelector(`#find-agree-${form}`);
    return {
      query: list.dataset.query ?? '',
      cosines: [...list.querySelectorAll('.find-cosine')].map((cell) => Number(cell.textContent)),
      times: ['ms-float32', 'ms-int8', 'ms-loop'].map(text),
      agree: ['float32', 'int8'].map((form) => agreement(form).textContent),
      checked: ['float32', 'int8'].map((form) => agreement(form).dataset.query),
    };
  });

/** Waits until the loop has checked another query than the one before. */
const untilChecked = (tab, before) =>
  tab.waitFor(
    `another query than ${before} is checked`,
    (before) => {
      const { query } = document.querySelector('#find-list').dataset;
      const checked = ['float32', 'int8'].map(
        (form) => document.querySelector(`#find-agree-${form}`).dataset.query,
      );
      return query !== undefined && query !== before && checked.every((one) => one === query);
    },
    { args: [before ?? ''] },
  );

/** Both forms find what the loop finds, in the order of the cosines. */
async function expectAgreement(tab) {
  const state = await stateOf(tab);
  const { cosines } = state;
  if (cosines.length !== 10) refuse(`it found ${cosines.length}`);
  for (const text of state.agree) if (text !== '10 of 10 agree') refuse(`it says: ${text}`);
  if (!cosines.every((cosine, i) => cosine > 0 && cosine <= 1 && !(cosine > cosines[i - 1])))
    refuse(`the cosines are ${cosines.join()}`);
  for (const time of state.times)
    if (!/^[\d.,]+ (µs|ms|s)$/.test(time)) refuse(`the times are ${state.times.join()}`);
  return state;
}

export async function testFind(test, tab) {
  await test('makes no vectors before it is asked to', async () => {
    const { query } = await stateOf(tab);
    if (query !== '') refuse(`it found neighbours of ${query}`);
    if (!/\d+ MB/.test(await tab.textOf('#find-cost'))) refuse('it does not say what they take');
  });
  let cancelled; // ms
  await test('cancels making them', async () => {
    await tab.click('#find-make');
    cancelled = await tab.cancel('find');
    if (await tab.evaluate(() => document.querySelector('#find-start').hidden))
      refuse('the vectors are there');
  });
  await test('finds what a plain loop finds', async () => {
    await tab.click('#find-make');
    const whole = await tab.untilJobEnds('find');
    await tab.waitFor('the vectors', () => !document.querySelector('#find-map').hidden);
    expectSooner(cancelled, whole);
    await untilChecked(tab);
    const { times } = await expectAgreement(tab);
    return times.join(', ');
  });
  await test('follows the pointer', async () => {
    const before = await stateOf(tab);
    const { x, y, width, height } = await tab.boxOf('#find-map');
    const at = (part) => ({ x: x + part * width, y: y + (1 - part) * height });
    await tab.hover(Array.from({ length: 12 }, (_, i) => at(0.25 + i / 24)));
    await untilChecked(tab, before.query);
    await expectAgreement(tab);
  });
  await test('draws the points and the marks', async () => {
    const [points] = await tab.drawnIn('#find-points');
    const [marks] = await tab.drawnIn('#find-map');
    if (!(points.inked > 0.05 && points.colours > 100)) refuse(JSON.stringify({ points }));
    if (!(marks.inked > 0.0005 && marks.inked < 0.2)) refuse(JSON.stringify({ marks }));
  });
  await test('searches in int8, by keyboard', async () => {
    const before = await stateOf(tab);
    await tab.hover([{ x: 1, y: 1 }]);
    await tab.click('#find-forms input[value=int8]');
    await tab.evaluate(() => document.querySelector('#find-map').focus());
    for (let i = 0; i < 5; ++i) {
      await tab.press('ArrowLeft');
      await sleep(30);
    }
    await untilChecked(tab, before.query);
    await expectAgreement(tab);
  });
  await test('frees the memory, and makes the vectors again', async () => {
    await tab.click('#find-free');
    await tab.waitFor('the start', () => !document.querySelector('#find-start').hidden);
    if (!/freed/.test(await tab.textOf('#find-words'))) refuse('it does not say so');
    await tab.click('#find-make');
    await tab.waitFor('the vectors', () => !document.querySelector('#find-map').hidden, {
      timeout: 60_000,
    });
    await untilChecked(tab);
    await expectAgreement(tab);
  });
}
