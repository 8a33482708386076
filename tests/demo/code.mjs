// Tests of the code on the page: it is what its file has, runs as it is, and can be copied.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { root } from '../../scripts/run.mjs';
import { refuse } from '../package/results.mjs';

const folder = join(root, 'examples', 'demo', 'code');
const files = readdirSync(folder);

/** What code says in a comment that it prints everywhere. */
const promised = /^\/\/ Everywhere: (\w+)$/m;

/** Presses the button that copies, and refuses another text in the clipboard. */
export async function expectCopies(tab, box, expected) {
  const button = `${box} .copy`;
  await tab.click(button);
  const said = await tab.waitFor(
    'the copy',
    (button) => {
      const { textContent } = document.querySelector(button);
      return textContent !== 'Copy' && textContent;
    },
    { args: [button] },
  );
  if (said !== 'Copied') return said; // the browser does not let the page
  const text = await tab.paste();
  if (text !== expected) refuse(`it copied: ${text}`);
  return said;
}

export async function testCode(test, tab) {
  await test('runs as it is', async () => {
    for (const file of files) {
      const { stdout } = await promisify(execFile)(process.execPath, [join(folder, file)]);
      if (!stdout.trim()) refuse(`${file} prints nothing`);
      const [, says = ''] = promised.exec(readFileSync(join(folder, file), 'utf8')) ?? [];
      if (!stdout.includes(says)) refuse(`${file} prints ${stdout}`);
    }
    return `${files.length} files`;
  });
  await test('shows each file, and imports only the package', async () => {
    const shown = await tab.evaluate(() =>
      [...document.querySelectorAll('section > .code pre')].map(({ textContent }) => textContent),
    );
    for (const file of files) {
      const text = readFileSync(join(folder, file), 'utf8').trimEnd();
      if (!shown.includes(text)) refuse(`the page does not show ${file}`);
    }
    const others = shown
      .flatMap((text) => [...text.matchAll(/from '([^']+)'/g)])
      .filter(([, name]) => !/^wgemm(\/\w+)?$|^@huggingface\/tokenizers$/.test(name));
    if (shown.length !== files.length || others.length > 0)
      refuse(`${shown.length} pieces of code import ${others.join()}`);
  });
  await test('copies it', async () => {
    // Lines that the meter shows when it starts move the button.
    await tab.reveal('#meter');
    await tab.waitFor('the meter', () => 'started' in document.querySelector('#meter').dataset);
    const code = readFileSync(join(folder, 'meter.mjs'), 'utf8').trimEnd();
    return await expectCopies(tab, '#meter > .code', code);
  });
}
