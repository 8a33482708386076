/** The fixed problems computed natively: the same bits as in every engine. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import {
  hashes,
  hashOf,
  makeProblems,
  type Problem,
  run,
  serialized,
  threadCounts,
} from '../support/fixed-problems.js';
import { sameBytes } from '../support/tensors.js';

const program =
  process.env.WGEMM_FIXED_PROBLEMS ||
  fileURLToPath(
    new URL(
      `../../../build/native/wgemm_fixed_problems${process.platform === 'win32' ? '.exe' : ''}`,
      import.meta.url,
    ),
  );

/** In the form that tests/native/fixed_problems.cc reads. */
function wordsOf(problems: readonly Problem[]): Buffer {
  const parts: Uint8Array[] = [];
  const write = (...words: (number | string)[]) => {
    for (const word of words)
      parts.push(
        typeof word === 'number'
          ? bytesOf(Float64Array.of(word))
          : Buffer.alloc(8, 0).fill(word, 0, word.length),
      );
  };
  for (const { op, attributes, operands } of problems) {
    write(op, ...attributes);
    for (const operand of operands) {
      if (!operand) {
        write('');
        continue;
      }
      const { dtype, shape, data } = operand;
      write(dtype, shape.length, ...shape);
      parts.push(bytesOf(data), new Uint8Array(-data.byteLength & 7));
    }
  }
  return Buffer.concat(parts);
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Omit<ArrayBufferView, 'toString'>) =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** The native results. `like`: other results of the same lengths. */
function runNatively(
  problems: readonly Problem[],
  like: readonly Uint8Array[],
  ...args: string[]
): Uint8Array[] {
  if (!existsSync(program)) {
    const how =
      'build it by `cmake --preset native && cmake --build --preset native`, or name it in WGEMM_FIXED_PROBLEMS';
    expect.fail(`${program}, which computes natively, is not there: ${how}.`);
  }
  const { status, error, stdout, stderr } = spawnSync(program, args, {
    input: wordsOf(problems),
    maxBuffer: Infinity,
  });
  if (status !== 0)
    expect.fail(`${program} ${args.join(' ')} fails: ${error?.message ?? String(stderr)}`);
  let at = 0;
  const results = like.map(({ length }) => stdout.subarray(at, (at += length)));
  expect(stdout.length, 'bytes of all results').toBe(at);
  return results;
}

const problems = makeProblems();
const exact = problems.filter((problem) => problem.exact);

it.each(
  threadCounts.flatMap((threads) =>
    [[], ['packed']].flatMap((form) => [
      { args: ['strict', String(threads), ...form], asked: problems, wanted: hashes.strict },
      { args: ['fast', String(threads), ...form], asked: exact, wanted: hashes.exact },
    ]),
  ),
)('natively, the same results: $args', async ({ args, asked, wanted }) => {
  using wg = await createGemm({ determinism: 'strict' });
  const here = asked.map((problem) => run(wg, problem));
  const natively = runNatively(asked, here, ...args);
  // First each by its name. The hash over all of them would not tell which one differs.
  expect(
    asked
      .filter((_, i) => !sameBytes(natively[i] as Uint8Array, here[i] as Uint8Array))
      .map(({ name }) => name),
  ).toEqual([]);
  expect(await hashOf(natively)).toBe(wanted);
});

it('natively, packed weights of the same bytes, and the same results by what is made of these', async () => {
  using wg = await createGemm({ determinism: 'strict' });
  const here = problems.flatMap((problem) => [serialized(wg, problem), run(wg, problem)]);
  const natively = runNatively(problems, here, 'strict', '1', 'serialized');
  expect(
    problems
      .filter((_, i) => !sameBytes(natively[2 * i] as Uint8Array, here[2 * i] as Uint8Array))
      .map(({ name }) => name),
  ).toEqual([]);
  expect(await hashOf(natively.filter((_, i) => i % 2 === 0))).toBe(hashes.serialized);
  expect(await hashOf(natively.filter((_, i) => i % 2 === 1))).toBe(hashes.strict);
});
