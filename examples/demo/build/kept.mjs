// Files that a build makes, and keeps for later builds.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '..', '..', '..');
export const examples = join(root, 'examples');

/**
 * The folder of files that are made once.
 *
 * @param name of a folder in build/
 * @param key a hash of everything that the files are made from
 * @param makeFiles returns their bytes by name, or a promise of them
 */
export async function keptFolder(name, key, makeFiles) {
  const folder = join(root, 'build', name, key);
  if (existsSync(folder)) return folder;
  // A build that is interrupted must not leave half of the files.
  const unfinished = `${folder}-${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  for (const [file, bytes] of Object.entries(await makeFiles()))
    writeFileSync(join(unfinished, file), bytes);
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(unfinished, { recursive: true }); // another build was faster
  }
  return folder;
}
