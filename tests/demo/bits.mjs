// Tests of the hashes in strict and in fast mode.
import { createHash } from 'node:crypto';
import { refuse } from '../package/results.mjs';

/** SHA-256 of the product by three loops, each product and each sum rounded in ascending k. */
function hashByLoops(size = 256) {
  const [a, b] = [17, 31].map((seed) =>
    Float32Array.from({ length: size * size }, (_, i) => ((seed * i) % 1009) / 1009 - 0.5),
  );
  const y = new Float32Array(size * size);
  for (let i = 0; i < size; ++i)
    for (let k = 0; k < size; ++k) {
      const left = a[i * size + k];
      // The array rounds the sum.
      for (let j = 0; j < size; ++j) y[i * size + j] += Math.fround(left * b[k * size + j]);
    }
  return createHash('sha256').update(y).digest('hex');
}

let expected;

const shownIn = (tab) =>
  tab.evaluate(() =>
    Object.fromEntries(
      ['strict-verdict', 'strict-hash', 'expected', 'fast-verdict', 'fast-hash', 'fast-facts'].map(
        (name) => [name, document.querySelector(`#bits-${name}`).textContent.trim()],
      ),
    ),
  );

const untilComputed = (tab) =>
  tab.waitFor('the hashes', () => {
    const hash = document.querySelector('#bits-fast-hash').textContent;
    return hash.length === 64 && !document.querySelector('#bits-again').disabled;
  });

/** Waits for the hashes, and checks the strict one; returns what is shown. */
export async function expectHash(tab) {
  expected ??= hashByLoops();
  await untilComputed(tab);
  const shown = await shownIn(tab);
  if (shown.expected !== expected) refuse(`it expects ${shown.expected}, the loops ${expected}`);
  if (shown['strict-hash'] !== expected) refuse(`the strict hash is ${shown['strict-hash']}`);
  return shown;
}

export async function testBits(test, tab) {
  await test('shows the hash of three plain loops, in green', async () => {
    const shown = await expectHash(tab);
    if (!shown['strict-verdict'].includes('The same bits'))
      refuse(`it says: ${shown['strict-verdict']}`);
    const isGreen = await tab.evaluate(() => {
      const verdict = document.querySelector('#bits-strict-verdict');
      const sample = document.body.appendChild(document.createElement('p'));
      sample.style.color = 'var(--good)';
      const [found, good] = [verdict, sample].map((element) => getComputedStyle(element).color);
      sample.remove();
      return found === good;
    });
    if (!isGreen) refuse('it is not green');
  });
  await test('shows the hash that its code prints', async () => {
    // The test of the code runs it.
    const code = await tab.textOf('#bits > .code pre');
    const [, promised = 'no hash'] = /^\/\/ Everywhere: (\w+)$/m.exec(code) ?? [];
    if (promised !== expected) refuse(`the code promises ${promised}, the page has ${expected}`);
  });
  await test('says why fast mode may differ', async () => {
    const shown = await shownIn(tab);
    const isSame = shown['fast-hash'] === expected;
    if (!shown['fast-verdict'].includes(isSame ? 'The same' : 'Differs'))
      refuse(`it says: ${shown['fast-verdict']}, of ${shown['fast-hash']}`);
    if (!/order/.test(shown['fast-facts'])) refuse(`it gives no reason: ${shown['fast-facts']}`);
    return isSame ? 'the same here' : 'differs here';
  });
  await test('computes again', async () => {
    await tab.evaluate(() => document.querySelector('#bits-fast-hash').replaceChildren());
    await tab.click('#bits-again');
    await expectHash(tab);
  });
}
