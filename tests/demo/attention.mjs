// Tests of the heads over a sentence.
import { refuse } from '../package/results.mjs';
import { cancel } from './jobs.mjs';

const tokensOf = (tab) =>
  tab.evaluate(() =>
    [...document.querySelectorAll('#attention-tokens .attention-token')].map(
      ({ textContent }) => textContent,
    ),
  );

/** Waits until the maps show the sentence in the input. */
const untilShown = (tab, sentence) =>
  tab.waitFor(
    `the maps of "${sentence}"`,
    (sentence) => {
      const { dataset } = document.querySelector('#attention');
      const { value } = document.querySelector('#attention-text');
      return dataset.sentence === value && value.includes(sentence);
    },
    { args: [sentence] },
  );

const tokenAt = (at) => `#attention-tokens button:nth-child(${at + 1})`;
const headNamed = (name) => `#attention-maps figure[data-head="${name}"] button`;

/** What the chosen token looks at in a head, the largest share first: text. */
const captionOf = (tab, head) => tab.textOf(`#attention-maps figure[data-head="${head}"] p`);

/** Chooses a token, and checks what some heads see: head -> start of the caption. */
async function expectLooks(tab, token, wanted) {
  await tab.click(tokenAt(token));
  for (const [head, start] of Object.entries(wanted)) {
    const caption = await captionOf(tab, head);
    if (!start.test(caption)) refuse(`${head}: token ${token} looks at ${caption}`);
  }
}

const untilTimed = (tab) =>
  tab.waitFor('the times', () => {
    const cells = [...document.querySelectorAll('#attention-times td:first-of-type')];
    return (
      document.querySelector('#attention .job').hidden &&
      cells.every(({ textContent }) => / (ns|µs|ms|s)$/.test(textContent)) &&
      cells.map(({ textContent }) => textContent)
    );
  });

export async function testAttention(test, tab) {
  await test('draws six heads', async () => {
    await untilShown(tab, 'dog');
    await tab.untilDrawn('#attention-maps canvas', 3, 6);
  });
  await test('each head looks where its name says', async () => {
    await expectLooks(tab, 1, {
      word: /^(itself|dog \(13th\)) \d+%, (itself|dog \(13th\)) \d+%/,
      before: /^The/,
      after: /^was/,
      start: /^The/,
    });
    await expectLooks(tab, 8, { before: /^the \(8th\)/, after: /^:/, letters: /dog/ });
  });
  await test('shows a token under the pointer', async () => {
    const { x, y, width, height } = await tab.boxOf(tokenAt(3));
    await tab.hover([
      { x: 1, y: 1 },
      { x: x + width / 2, y: y + height / 2 },
    ]);
    await tab.waitFor('the row of the token', () =>
      /\bthe \(4th\) looks at/.test(document.querySelector('#attention-row').textContent),
    );
    await tab.hover([{ x: 1, y: 1 }]);
  });
  await test('chooses tokens and heads by keyboard', async () => {
    await tab.click(tokenAt(0));
    await tab.press('ArrowRight');
    await tab.press('ArrowRight');
    await tab.evaluate((head) => document.querySelector(head).focus(), headNamed('before'));
    await tab.press('Enter');
    const said = await tab.waitFor('the answer', () => {
      const { textContent } = document.querySelector('#attention-said');
      return /word before/i.test(textContent) && textContent;
    });
    if (!/word before: was\b.* looks at dog/i.test(said)) refuse(`it says: ${said}`);
    await tab.press('Enter'); // all heads again
  });
  await test('computes a sentence as it is typed', async () => {
    await tab.retype('#attention-text', 'red cat, red hat');
    await untilShown(tab, 'red cat, red hat');
    const tokens = await tokensOf(tab);
    if (tokens.join(' ') !== 'red cat , red hat') refuse(`the tokens are ${tokens.join(' ')}`);
    await expectLooks(tab, 3, { word: /red \(1st\)/, before: /^,/, after: /^hat/ });
  });
  await test('times the block, cancels, and times it again', async () => {
    await untilTimed(tab);
    await tab.click('#attention-again');
    await cancel(tab, 'attention');
    await tab.evaluate(() => {
      for (const cell of document.querySelectorAll('#attention-times td')) cell.textContent = '-';
    });
    await tab.click('#attention-again');
    const times = await untilTimed(tab);
    const differences = await tab.evaluate(() =>
      [...document.querySelectorAll('#attention-times td:last-child')].map(({ textContent }) =>
        Number(textContent.replaceAll(' ', '')),
      ),
    );
    if (!(differences[0] < 1e-5)) refuse(`float32 differs by ${differences[0]}`);
    if (!(differences[1] < 0.05)) refuse(`bfloat16 differs by ${differences[1]}`);
    return times.join(', ');
  });
}
