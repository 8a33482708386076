/** Version numbers that several files need to state: all of them must be the same. */
import { expect, it } from 'vitest';

const script = new URL('../../../scripts/versions.mjs', import.meta.url);
const { findVersions, versionNames } = (await import(script.href)) as {
  versionNames: string[];
  findVersions: (name: string) => { file: string; version: string }[];
};

it.each(versionNames)('%s', (name) => {
  const found = findVersions(name);
  expect(found.length).toBeGreaterThan(1);
  const { version } = found[0]!;
  expect(found).toEqual(found.map(({ file }) => ({ file, version })));
});
