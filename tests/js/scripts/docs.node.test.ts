/** Counts and lists that pages state, compared with what they count. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { dtypeNames } from '../../../js/base/arrays.js';
import { builds } from '../../../js/instance/builds.js';
import { allOperators } from '../../../js/onnx/operators/all.js';
import { operations } from '../../../js/ops/operations.js';

const root = new URL('../../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');

const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, unknown> };
const entries = Object.keys(exports)
  .filter((path) => typeof exports[path] === 'object')
  .map((path) => path.replace(/^\./, 'wgemm'));

/** Each build has two modules. */
const buildCount = Object.keys(builds()).length / 2;

const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];
const numberOf = (text: string) => (words.includes(text) ? words.indexOf(text) : Number(text));
const decisions = read('docs/design/decisions/index.md').match(/^\| \d{3} \| .*\]\(\d{3}-/gm) ?? [];

describe('a page states how many', () => {
  it.each([
    ['docs/design/package.md', /has the (\w+) entries/, entries.length],
    ['docs/design/package.md', /has all (\w+) builds/, buildCount],
    ['docs/design/architecture.md', /the (\w+) entries and the program/, entries.length],
    ['docs/design/testing.md', /API on all (\w+) builds/, buildCount],
    ['docs/guide/builds.md', /comes in (\w+) builds/, buildCount],
    ['docs/operators/index.md', /computes (\w+) operators/, Object.keys(operations).length],
    ['docs/guide/types-and-opsets.md', /have (\w+) types of elements/, dtypeNames.length - 2],
    ['docs/design/size.md', /\| (\w+) operators around products/, allOperators.size],
  ] as const)('%s: %s', (page, pattern, count) => {
    const [, stated] = pattern.exec(read(page)) ?? [];
    expect(numberOf(String(stated))).toBe(count);
  });

  it('decisions: at most 35', () => {
    expect(decisions.length).toBeGreaterThan(0);
    expect(decisions.length).toBeLessThanOrEqual(35);
  });
});

describe('a page lists', () => {
  it.each([
    ['docs/guide/bundlers/index.md', /## The entries\n\n([^]*?)\n\n/],
    ['docs/design/glossary.md', /^\| entry \| (.*)$/m],
  ] as const)('%s: the entries', (page, pattern) => {
    const [, list = ''] = pattern.exec(read(page)) ?? [];
    const found = Array.from(
      list.matchAll(/`(wgemm(?:\/[a-z]+)?)`/g),
      ([, name]) => name as string,
    );
    expect([...new Set(found)].sort()).toEqual([...entries].sort());
  });
});

describe('a recipe', () => {
  const names = readdirSync(new URL('docs/recipes/', root)).filter((name) => name !== 'index.md');
  const list = read('docs/recipes/index.md');

  it.each(names)(
    '%s: says when to use it, names its main call, and shows what it prints',
    (name) => {
      const page = read(`docs/recipes/${name}`);
      // Keywords for the search may come first.
      expect(page.replace(/^---\n[^]*?\n---\n+/, '')).toMatch(/^# .*\n\n[A-Z]/);
      expect(page).toMatch(/\n\nUse it [^]*?\. The main calls? (is|are)\s/);
      const [, calls = ''] = /The main calls? (?:is|are)\s([^]*?)\n\n/.exec(page) ?? [];
      expect(calls).toMatch(/\]\(\.\.\/(operators|guide)\/[a-z-]+\.md/);
      expect(page).toMatch(/```js\n[^]*?```\n[^]*?prints?[^]*?:\n\n```text\n/);
      expect(list).toContain(`](${name})`);
    },
  );
});

describe('docs/guide/errors.md', () => {
  const page = read('docs/guide/errors.md');
  const [, block = ''] = /\nconst messages = \[\n([^]*?)\n\];\n/.exec(page) ?? [];
  const compared = Array.from(block.matchAll(/, '(.*)'\],$/gm), ([, message]) => message);
  const shownIn = (text: string) =>
    Array.from(text.matchAll(/^\| `(.*?)` \|/gm), ([, cell]) => cell);

  it('shows each message that its code block compares', () => {
    expect(compared.length).toBeGreaterThan(20);
    expect(shownIn(page)).toEqual(expect.arrayContaining(compared));
  });

  it('compares each message of the classes that its code block can throw', () => {
    const [, classes = ''] = /\n## Classes\n([^]*?)\n### UnsupportedError/.exec(page) ?? [];
    expect(compared).toEqual(expect.arrayContaining(shownIn(classes)));
  });
});
