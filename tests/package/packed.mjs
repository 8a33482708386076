// Makes the tarball by npm, once per run, and empty projects that have it installed.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';
import { runChild } from './child.mjs';

const folder = join(root, 'build', 'package');

let packed;

/** The tarball of this run. @returns as packInto() */
export const pack = () => (packed ??= packInto(folder));

/**
 * Empties a folder and makes the tarball there. Programs that may run at once have each their own.
 *
 * @returns { file, names }: the tarball, and the paths in it
 */
export async function packInto(to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const [{ filename, files }] = JSON.parse(
    await runChild('npm', ['pack', '--json', '--pack-destination', to], { cwd: root }),
  );
  return { file: join(to, filename), names: files.map(({ path }) => path).sort() };
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
