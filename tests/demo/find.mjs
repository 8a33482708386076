// Tests of the search for the nearest vectors.
import { setTimeout as sleep } from 'node:timers/promises';
import { refuse } from '../package/results.mjs';
import { cancel, expectSooner, untilJobEnds } from './jobs.mjs';

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

/** Waits until the list is of another vector; returns it. */
const untilQuery = (tab, before) =>
  tab.waitFor(
    `another query than ${before}`,
    (before) => {
      const { query } = document.querySelector('#find-list').dataset;
      return query && query !== before && query;
    },
    { args: [before] },
  );

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

/** float32 finds what the loop finds, and int8 at least 8 of 10, in the order of the cosines. */
async function expectAgreement(tab) {
  const state = await stateOf(tab);
  const { cosines } = state;
  if (cosines.length !== 10) refuse(`it found ${cosines.length}`);
  const [exact, rescored] = state.agree;
  if (exact !== '10 of 10 agree') refuse(`float32 says: ${exact}`);
  if (!/^([89]|10) of 10 agree$/.test(rescored)) refuse(`int8 says: ${rescored}`);
  if (!cosines.every((cosine, i) => cosine > 0 && cosine <= 1 && !(cosine > cosines[i - 1])))
    refuse(`the cosines are ${cosines.join()}`);
  for (const time of state.times)
    if (!/^[\d.,]+ (µs|ms|s)$/.test(time) || !(parseFloat(time) > 0))
      refuse(`the times are ${state.times.join()}`);
  return state;
}

/**
 * Moves the pointer over the map as fast as frames are drawn. Chromium's trace tells of garbage
 * collections, in the page and in its workers.
 *
 * @returns frames and answers per second; the number of collections; the longest frame and the
 * longest collection, in ms
 */
async function watchMoves(tab, seconds) {
  const { x, y, width, height } = await tab.boxOf('#find-map');
  await tab.evaluate(() => {
    const watch = (window.testWatch = { frames: 0, answers: 0, longest: 0 });
    const clear = CanvasRenderingContext2D.prototype.clearRect;
    watch.end = () => {
      watch.isOver = true;
      CanvasRenderingContext2D.prototype.clearRect = clear;
      return watch;
    };
    // Each answer draws the marks.
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
      ++watch.answers;
      clear.apply(this, box);
    };
    const count = (time) => {
      ++watch.frames;
      watch.longest = Math.max(watch.longest, time - (watch.last ?? time));
      watch.last = time;
      if (!watch.isOver) requestAnimationFrame(count);
    };
    requestAnimationFrame(count);
  });
  await tab.page.tracing.start({ categories: ['v8', 'devtools.timeline'] });
  const start = performance.now();
  let elapsed = 0;
  while (elapsed < seconds) {
    await tab.hover([
      {
        // So fast that each move is to another vector.
        x: x + width * (0.5 + 0.35 * Math.cos(4 * elapsed)),
        y: y + height * (0.5 + 0.35 * Math.sin(5 * elapsed)),
      },
    ]);
    await sleep(5);
    elapsed = (performance.now() - start) / 1000;
  }
  const { frames, answers, longest } = await tab.evaluate(() => window.testWatch.end());
  const { traceEvents } = JSON.parse(Buffer.from(await tab.page.tracing.stop()).toString());
  const collections = traceEvents.filter(({ name }) => name === 'MinorGC' || name === 'MajorGC');
  return {
    frames: frames / elapsed,
    answers: answers / elapsed,
    frame: longest,
    collections: collections.length,
    collection: Math.max(0, ...collections.map(({ dur = 0 }) => dur / 1000)),
  };
}

export async function testFind(test, tab, { engine, isIsolated }) {
  // A visitor who wants less motion starts it.
  if (isIsolated)
    await test('starts by itself in view, and tours', async () => {
      await tab.waitFor('the vectors', () => !document.querySelector('#find-map').hidden, {
        timeout: 60_000,
      });
      const first = await untilQuery(tab, '');
      await untilQuery(tab, first);
      await tab.click('#find-free');
    });
  else
    await test('makes no vectors before it is asked to', async () => {
      await tab.waitFor('the button', () => !document.querySelector('#find-make').disabled);
      await sleep(500);
      const { query } = await stateOf(tab);
      if (query !== '') refuse(`it found neighbours of ${query}`);
      if (!/\d+ MB/.test(await tab.textOf('#find-cost'))) refuse('it does not say what they take');
    });
  let cancelled; // ms
  await test('cancels making them', async () => {
    await tab.click('#find-make');
    cancelled = await cancel(tab, 'find');
    if (await tab.evaluate(() => document.querySelector('#find-start').hidden))
      refuse('the vectors are there');
  });
  await test('finds what a plain loop finds', async () => {
    await tab.click('#find-make');
    const whole = await untilJobEnds(tab, 'find');
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
  if (engine === 'chromium' && isIsolated)
    await test('answers while the pointer moves', async () => {
      const seen = await watchMoves(tab, 3);
      const shown =
        `${Math.round(seen.frames)} frames and ${Math.round(seen.answers)} answers per s, ` +
        `frames of at most ${Math.round(seen.frame)} ms, ` +
        `${seen.collections} collections of at most ${seen.collection.toFixed(1)} ms`;
      // Other tests take the processor at the same time.
      if (seen.answers < 5) refuse(shown);
      return shown;
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
