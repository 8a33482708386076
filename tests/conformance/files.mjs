// Finds the files with test vectors.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isVectors } from './vectors.mjs';

/**
 * { paths: the project's own cases and the cases of the folder that WGEMM_CONFORMANCE_DIR names,
 *   folder, wrong: what is wrong with the folder }
 */
export function listVectors() {
  const folder = process.env.WGEMM_CONFORMANCE_DIR;
  const more = folder ? vectorsIn(folder) : [];
  const nothing = folder && more.length === 0;
  return {
    paths: [fileURLToPath(new URL('own-cases.jsonl', import.meta.url)), ...more],
    folder,
    wrong: nothing
      ? `WGEMM_CONFORMANCE_DIR is '${folder}', where there are no vectors (*.jsonl): name the ` +
        'folder that holds them'
      : undefined,
  };
}

function vectorsIn(folder) {
  try {
    return readdirSync(folder)
      .filter(isVectors)
      .map((file) => join(folder, file));
  } catch {
    return [];
  }
}
