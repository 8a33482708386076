// Tests of the text that the language model writes.
import { refuse } from '../package/results.mjs';
import { cancel, untilJobEnds } from './jobs.mjs';

const forms = ['float32', 'int8', '4bits'];
const length = 400; // characters after the beginning

/** Presses the button, and waits until all forms have written; returns their texts. */
export async function letWrite(tab, beginning) {
  await tab.evaluate(() => {
    document.querySelector('#llm-said').textContent = '';
  });
  await tab.click('#llm-write');
  await tab.waitFor(
    'the texts',
    () =>
      document.querySelector('#llm .job').hidden &&
      !document.querySelector('#llm-write').disabled &&
      document.querySelector('#llm-said').textContent,
    { timeout: 60_000 },
  );
  const written = await tab.evaluate(
    (forms) =>
      forms.map((form) => ({
        form,
        text: document.querySelector(`#llm-text-${form}`).textContent,
        same: document.querySelector(`#llm-same-${form}`).textContent,
      })),
    forms,
  );
  for (const { form, text } of written)
    if (!text.startsWith(beginning) || text.length !== beginning.length + length)
      refuse(`${form} writes ${text.length} characters: ${text}`);
  return written;
}

const numberIn = (text) => Number.parseFloat(text.replaceAll(',', ''));

const isFetched = (tab) => tab.server.requested().some(({ path }) => isModel(path));

/** Whether a file is the model, which only a press of the button fetches. */
export const isModel = (path) => /\/llm-[^/]*\.bin$/.test(path);

export async function testLlm(test, tab, { demo }) {
  await test('fetches no model by itself', async () => {
    await tab.waitFor('the button', () => !document.querySelector('#llm-write').disabled);
    if (isFetched(tab)) refuse('it fetched the model');
    const { length } = demo[Object.keys(demo).find(isModel)];
    const says = await tab.textOf('#llm-file');
    if (!says.includes(`${Math.round(length / 1000)} kB`)) refuse(`${length} bytes, but: ${says}`);
  });
  await test('writes in three forms, where nothing moves', async () => {
    const heightOf = () => tab.evaluate(() => document.querySelector('#llm').offsetHeight);
    const before = await heightOf();
    const written = await letWrite(tab, 'The kernel ');
    const after = await heightOf();
    if (after !== before) refuse(`the part was ${before} pixels high, and is ${after}`);
    if (!isFetched(tab)) refuse('it fetched no model');
    const [float32, ...others] = written;
    const words = float32.text.match(/\b(the|of|a|and|is|in|to)\b/g) ?? [];
    if (words.length < 15) refuse(`it writes few words of English: ${float32.text}`);
    for (const { form, text, same: says } of others) {
      const after = (text) => text.slice('The kernel '.length);
      const [own, first] = [after(text), after(float32.text)];
      const same = [...own].findIndex((character, i) => character !== first[i]);
      if (says !== `: ${same < 0 ? length : same} of ${length} as float32`)
        refuse(`${form} says ${says}, but ${same} characters are the same`);
    }
  });
  await test('shows what 4 bits are for', async () => {
    await tab.click('#llm-measure');
    await cancel(tab, 'llm');
    await tab.click('#llm-measure');
    await untilJobEnds(tab, 'llm');
    const rows = await tab.evaluate(
      (forms) =>
        forms.map((form) =>
          [...document.querySelectorAll(`#llm-row-${form} td`)].map((cell) => cell.textContent),
        ),
      forms,
    );
    const [bytes, speeds] = [0, 1].map((i) => rows.map((cells) => numberIn(cells[i])));
    if (!(bytes[0] > 3.5 * bytes[1] && bytes[1] > 1.4 * bytes[2])) refuse(`the bytes are ${bytes}`);
    if (!(speeds[2] > 1.2 * speeds[0])) refuse(`tokens per second: ${speeds}`);
    const says = await tab.waitFor(
      'the words',
      () => document.querySelector('#llm-gain').textContent,
    );
    const told = [...says.matchAll(/(\d+)% of the bytes of (?:float32|int8) at ([\d.]+) times/g)]
      .flatMap(([, ...figures]) => figures)
      .map(Number);
    const expected = [0, 1].flatMap((i) => [(100 * bytes[2]) / bytes[i], speeds[2] / speeds[i]]);
    // The figures of the table are rounded.
    if (!expected.every((figure, i) => Math.abs(told[i] / figure - 1) < 0.04))
      refuse(`it says: ${says} expected ${expected.map((value) => value.toFixed(2))}`);
    return `${rows.join('; ')}; ${says}`;
  });
  await test('goes on from what the visitor writes, with another text each time', async () => {
    await tab.retype('#llm-beginning', 'A packed matrix');
    const [first] = await letWrite(tab, 'A packed matrix');
    const [second] = await letWrite(tab, 'A packed matrix');
    if (first.text === second.text) refuse('it writes the same again');
  });
  await test('writes by the Enter key, from nothing', async () => {
    await tab.evaluate(() => {
      document.querySelector('#llm-text-4bits').replaceChildren();
      document.querySelector('#llm-beginning').select();
    });
    await tab.press('Backspace');
    await tab.press('Enter');
    await tab.waitFor(
      'the text',
      (length) => document.querySelector('#llm-text-4bits').textContent.length === length,
      { args: [length] },
    );
    await tab.waitFor('the end', () => document.querySelector('#llm .job').hidden);
    const focused = await tab.evaluate(() => document.activeElement.id);
    if (focused !== 'llm-beginning') refuse(`the focus is on ${focused || 'nothing'}`);
  });
}
