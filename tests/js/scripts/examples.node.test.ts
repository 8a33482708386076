/** Examples that check themselves do so. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

async function run(example: string, ...options: string[]): Promise<string> {
  const file = fileURLToPath(new URL(`../../../examples/${example}.mjs`, import.meta.url));
  return (await promisify(execFile)(process.execPath, [file, ...options])).stdout;
}

it('attention agrees with plain JavaScript, in float32 and in bfloat16', async () => {
  expect(await run('attention/attention')).toMatch(
    /^float32 .*agrees to.*\nbfloat16 .*agrees to.*\nplain JavaScript/m,
  );
});

it('search finds the nearest that plain JavaScript finds, exactly in float32', async () => {
  expect(await run('search/search')).toMatch(
    /^plain JavaScript .*\nfloat32 .* 250 of 250 agree\nbfloat16 .* agree\nint8 \+ bfloat16 .* agree$/m,
  );
});

it(
  'tiny-llm writes in float32, int8 and 4 bits, also from saved weights',
  { timeout: 300_000 },
  async () => {
    const file = fileURLToPath(new URL('../../../build/tiny-llm.bin', import.meta.url));
    await mkdir(dirname(file), { recursive: true });
    const answersOf = (said: string) => ({
      texts: /\nfloat32:\n([^]+)\none character is/.exec(said)![1],
      // Everything except the speed.
      rows: said
        .match(/^(float32|int8|4 bits) .* \d+\.\d+( .*%)?$/gm)!
        .map((line) => line.split(/ {2,}/).filter((_, column) => column !== 2)),
    });
    try {
      const learned = answersOf(await run('tiny-llm/tiny-llm', '--short', '--save', file));
      expect(learned.rows).toHaveLength(3);
      expect(answersOf(await run('tiny-llm/tiny-llm', '--load', file))).toEqual(learned);
    } finally {
      await rm(file, { force: true });
    }
  },
);

it(
  'digits that a saved network classifies are right as often as where it learned',
  { timeout: 300_000 },
  async () => {
    const table = await run('digits/digits');
    expect(table).toMatch(
      /^float32 +9\d.*\nbfloat16 +9\d.*\nint8 +9\d.*\nint8, 8-bit x +9\d.*\nint8, dynamic +9\d.*\nplain JavaScript +9\d/m,
    );
    const [, accuracy] = /^bfloat16 +(\S+)/m.exec(table)!;
    expect(await run('digits/classify')).toContain(` ${accuracy} right\n`);

    const file = fileURLToPath(new URL('../../../build/digits/network.bin', import.meta.url));
    const saved = await readFile(file);

    try {
      for (const at of [
        0,
        4 + 128 + 5, // of a bias
        saved.length - 500,
        undefined,
      ]) {
        await (at === undefined ? rm(file) : writeFile(file, saved.map((byte, i) => (i === at ? byte ^ 1 : byte)))); // prettier-ignore
        await expect(run('digits/classify')).rejects.toThrow(
          at === undefined ? /There is no .*: run `npm run digits` first/ : /was changed: run/,
        );
      }
    } finally {
      await writeFile(file, saved);
    }
  },
);
