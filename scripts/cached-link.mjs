// Runs a link by Emscripten, or copies the output of an earlier link with the same inputs. ccache
// keeps no links, and a module takes 7 s, a test program 14 s.
//   node scripts/cached-link.mjs em++ ARGUMENT...
// WGEMM_LINK_CACHE names the folder of outputs. Without it, each link runs.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

const most = 200e6; // bytes of outputs
const root = dirname(import.meta.dirname);
const [linker, ...words] = process.argv.slice(2);
const folder = process.env.WGEMM_LINK_CACHE;

/** The files that a link writes: the glue, the module, and the map if there is one. */
const output = words[words.indexOf('-o') + 1];
const files = [
  output,
  output.replace(/\.\w+$/, '.wasm'),
  ...words.flatMap((word) => /^-Wl,-Map=(.*)$/.exec(word)?.[1] ?? []),
];

/** Words that may name inputs which this script does not read. */
const isOpaque = (word) => word.includes('@') || /^-L|^--[\w-]+(js|file)=/.test(word);

/** A hash of all inputs. Undefined if some are not known, and for CMake's trial programs (.js). */
function keyOf() {
  const version = join(dirname(linker), 'emscripten-version.txt');
  if (!existsSync(version) || !/\.[cm]js$/.test(output) || words.some(isOpaque)) return undefined;
  // EMBIND_AOT runs the module in Node.
  const hash = createHash('sha256').update(readFileSync(version)).update(process.version);
  const add = (text) => hash.update(`\0${text.replaceAll(root, '')}\0`);
  for (const [name, value] of Object.entries(process.env).sort())
    if (name.startsWith('EM')) add(`${name}=${value}`);
  for (const word of [linker, ...words]) {
    add(word);
    if (word !== output && statSync(word, { throwIfNoEntry: false })?.isFile())
      hash.update(readFileSync(word));
  }
  return hash.digest('hex').slice(0, 32);
}

function link() {
  const { status, error } = spawnSync(linker, words, { stdio: 'inherit' });
  if (error) console.error(`cached-link: ${linker} does not start: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

/** Copies the kept output, and returns whether it was there. */
function take(at) {
  try {
    utimesSync(at, new Date(), new Date()); // so that it is not the oldest
    files.forEach((file, i) => copyFileSync(join(at, String(i)), file));
    return true;
  } catch {
    return false;
  }
}

/** Keeps the output of a link. The link has succeeded, whether this does or not. */
function keep(at) {
  const unfinished = `${at}-${process.pid}`;
  try {
    mkdirSync(unfinished, { recursive: true });
    files.forEach((file, i) => copyFileSync(file, join(unfinished, String(i))));
    renameSync(unfinished, at);
    removeOldest();
  } catch {
    // The disk is full, or another link keeps the same.
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

function removeOldest() {
  const bytesOf = (path) =>
    readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
  const all = readdirSync(folder)
    .map((name) => join(folder, name))
    .map((path) => ({ path, bytes: bytesOf(path), time: statSync(path).mtimeMs }))
    .sort((a, b) => b.time - a.time); // the newest first
  let total = 0;
  for (const { path, bytes } of all)
    if ((total += bytes) > most) rmSync(path, { recursive: true, force: true });
}

const key = folder ? keyOf() : undefined;
const at = key && join(folder, key);
if (!at || !take(at)) {
  link();
  if (at) keep(at);
}
