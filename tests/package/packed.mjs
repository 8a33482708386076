// Makes the tarball by npm, once per run, and empty projects that have it installed.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';
import { runChild } from './child.mjs';

const folder = join(root, 'build', 'package');

let packed;

/**
 * @param to the folder, which is emptied: one for each program, since they may run at once
 * @returns { file, names }: the tarball, and the paths in it
 */
export function pack(to = folder) {
  packed ??= (async () => {
    rmSync(to, { recursive: true, force: true });
    mkdirSync(to, { recursive: true });
    const [{ filename, files }] = JSON.parse(
      await runChild('npm', ['pack', '--json', '--pack-destination', to], { cwd: root }),
    );
    return { file: join(to, filename), names: files.map(({ path }) => path).sort() };
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
