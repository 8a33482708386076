// Reads a folder with a model and its tokenizer.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readFiles } from './files.mjs';

/** What an embedder needs: readFiles() of files.mjs, on a folder of this machine. */
export const readFolder = (folder, file) =>
  readFiles(folder, (name) => readIfThere(join(folder, name)), file);

async function readIfThere(path) {
  try {
    return await readFile(path);
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  }
}
