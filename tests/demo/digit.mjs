// Tests of the pad, the three answers and the training.
import { refuse } from '../package/results.mjs';
import { expectSooner, untilJobEnds } from './jobs.mjs';

const forms = ['float32', 'bfloat16', 'int8'];
const goal = 94; // % of the digits that the network has not seen

/** A plain 7, in parts of the pad. */
const seven = [
  [0.28, 0.24],
  [0.72, 0.24],
  [0.44, 0.8],
];

/** Points on the way, as a hand makes them. */
const along = (corners, count = 12) =>
  corners.slice(1).flatMap(([x, y], i) => {
    const [fromX, fromY] = corners[i];
    return Array.from({ length: count }, (_, j) => [
      fromX + ((x - fromX) * (j + 1)) / count,
      fromY + ((y - fromY) * (j + 1)) / count,
    ]);
  });

/** Draws a 7 by pointer, and waits until it is read. */
export async function drawSeven(tab) {
  await tab.click('#digit-clear');
  await untilRead(tab, '-');
  const { x, y, width, height } = await tab.boxOf('#digit-pad');
  const points = [seven[0], ...along(seven)];
  await tab.drag(points.map(([right, down]) => ({ x: x + right * width, y: y + down * height })));
  await untilRead(tab, '7');
}

/** Waits until all three forms read a digit, and the words say so. */
const untilRead = (tab, digit) =>
  tab.waitFor(
    `all three read ${digit}`,
    (forms, digit) => {
      const says = document.querySelector('#digit-status').textContent;
      return (
        forms.every((form) => {
          const answer = document.querySelector(`#digit-answer-${form}`);
          return answer.textContent === digit;
        }) && says.includes(digit === '-' ? 'empty' : `All three take it for a ${digit}`)
      );
    },
    { args: [forms, digit], timeout: 10_000 },
  );

/** Waits until no job runs; returns the rows of the table by form. */
async function untilMeasured(tab) {
  await tab.waitFor(
    'the times',
    () => {
      const cells = [...document.querySelectorAll('#digit-times tbody td')];
      return (
        document.querySelector('#digit .job').hidden &&
        !document.querySelector('#digit-train').disabled &&
        cells.length === 12 &&
        cells.every(({ textContent }) => textContent !== '-')
      );
    },
    { timeout: 60_000 },
  );
  return tab.evaluate(
    (forms) =>
      Object.fromEntries(
        forms.map((form) => [
          form,
          Object.fromEntries(
            ['one', 'many', 'bytes', 'right'].map((name) => [
              name,
              document.querySelector(`#digit-${name}-${form}`).textContent,
            ]),
          ),
        ]),
      ),
    forms,
  );
}

export async function testDigit(test, tab) {
  await test('reads a digit of the data set', async () => {
    const digit = await tab.waitFor('a digit', () => {
      const source = document.querySelector('#digit-source').textContent;
      return /: a (\d)\./.exec(source)?.[1];
    });
    await untilRead(tab, digit);
    await untilMeasured(tab);
    return digit;
  });
  await test('reads a 7 that the pointer draws', async () => {
    await drawSeven(tab);
    const sums = await tab.evaluate(
      (forms) =>
        forms.map((form) =>
          Array.from({ length: 10 }, (_, digit) =>
            Number.parseFloat(document.querySelector(`#digit-${form}-${digit}`).textContent),
          ).reduce((a, b) => a + b),
        ),
      forms,
    );
    if (sums.some((sum) => Math.abs(sum - 100) > 1)) refuse(`the bars sum to ${sums.join()}%`);
    const [{ inked }] = await tab.drawnIn('#digit-image');
    if (!(inked > 0.05 && inked < 0.4)) refuse(`${inked} of the image is inked`);
  });
  await test('reads a 7 that the keyboard draws', async () => {
    await tab.click('#digit-clear');
    await untilRead(tab, '-');
    await tab.evaluate(() => document.querySelector('#size .more a').focus());
    await tab.press('Tab');
    const focused = await tab.evaluate(() => document.activeElement.id);
    if (focused !== 'digit-pad') refuse(`Tab leads to ${focused || 'nothing'}`);
    const press = async (keys) => {
      for (const [key, times, ...modifiers] of keys)
        for (let i = 0; i < times; ++i) await tab.press(key, modifiers);
    };
    const step = [
      ['ArrowDown', 2],
      ['ArrowLeft', 1],
    ];
    await press([
      ['ArrowLeft', 1, 'Shift'],
      ['ArrowLeft', 2],
      ['ArrowUp', 2, 'Shift'],
      [' ', 1],
      ['ArrowRight', 3, 'Shift'],
      ...Array.from({ length: 8 }, () => step).flat(),
      [' ', 1],
    ]);
    await untilRead(tab, '7');
    await press([['Backspace', 1]]);
    await untilRead(tab, '-');
  });
  await test('times one digit and 1,000', async () => {
    await tab.click('#digit-measure');
    const rows = await untilMeasured(tab);
    for (const [form, { one, many, right }] of Object.entries(rows)) {
      if (![one, many].every((time) => /^[\d.,]+ (ns|µs|ms)$/.test(time) && parseFloat(time) > 0))
        refuse(`${form} takes ${one} and ${many}`);
      if (!(Number.parseFloat(right) >= goal)) refuse(`${form} recognizes ${right}`);
    }
    const bytes = forms.map((form) => Number.parseFloat(rows[form].bytes));
    if (!(bytes[0] > 1.9 * bytes[1] && bytes[1] > 1.8 * bytes[2]))
      refuse(`the bytes are ${forms.map((form) => rows[form].bytes).join(', ')}`);
    return forms.map((form) => `${rows[form].one} and ${rows[form].many} in ${form}`).join(', ');
  });
  let cancelled; // ms
  await test('cancels the training', async () => {
    await tab.click('#digit-train');
    await tab.waitFor('an epoch', () =>
      /^Epoch/.test(document.querySelector('#digit-progress').textContent),
    );
    await tab.click('#digit .job button');
    cancelled = await untilJobEnds(tab, 'digit');
    const says = await tab.waitFor(
      'the words',
      () => document.querySelector('#digit-trained').textContent,
    );
    if (!/^The training ended/.test(says)) refuse(`it says: ${says}`);
    if (!/built-in/.test(await tab.textOf('#digit-network'))) refuse('the network has changed');
  });
  await test(`trains to ${goal}%, and uses the network`, async () => {
    await tab.click('#digit-train');
    const start = performance.now();
    const says = await tab.waitFor(
      'the training',
      () =>
        /^Trained/.test(document.querySelector('#digit-trained').textContent) &&
        document.querySelector('#digit-trained').textContent,
      { timeout: 90_000 },
    );
    expectSooner(cancelled, performance.now() - start);
    const [time] = /[\d.]+ m?s(?=\.)/.exec(says) ?? refuse(`it says: ${says}`);
    const right = [...says.matchAll(/([\d.]+)%/g)].map(([, part]) => part);
    if (right.length !== 3 || !right.every((part) => Number(part) >= goal))
      refuse(`it says: ${says}`);
    if (!/trained here/.test(await tab.textOf('#digit-network'))) refuse('it is not in use');
    const rows = await untilMeasured(tab);
    if (!rows.float32.right.startsWith(right[0])) refuse(`the table says ${rows.float32.right}`);
    await tab.untilDrawn('#digit-chart canvas', 10);
    await drawSeven(tab);
    return `${right.join('%, ')}% in ${time}`;
  });
  await test('goes back to the built-in network', async () => {
    await tab.click('#digit-builtin');
    await tab.waitFor('the network', () =>
      /built-in/.test(document.querySelector('#digit-network').textContent),
    );
    await untilRead(tab, '7');
  });
}
