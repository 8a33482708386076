// Makes the tarball by npm, once per run, and empty projects that have it installed.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';
import { runChild } from './child.mjs';

const folder = join(root, 'build', 'package');

let packed;

/** @returns { file, names }: the tarball, and the paths in it */
export function pack() {
  packed ??= (async () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const [{ filename, files }] = JSON.parse(
      await runChild('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root }),
    );
    return { file: join(folder, filename), names: files.map(({ path }) => path).sort() };
  })();
  return packed;
}

/**
 * Makes a project in build/package/ that has only the tarball installed. @returns its folder
 */
export async function makeProject(name) {
  const { file } = await pack();
  const project = join(folder, name);
  rmSync(project, { recursive: true, force: true });
  mkdirSync(project, { recursive: true });
  // Its own `name`, so that `wgemm` never means the project itself.
  writeFileSync(
    join(project, 'package.json'),
    `${JSON.stringify({ name: 'empty', private: true, type: 'module' })}\n`,
  );
  await runChild('npm', ['install', '--offline', '--no-audit', '--no-fund', file], {
    cwd: project,
  });
  return project;
}
