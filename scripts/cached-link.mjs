// Runs a link by Emscripten, or copies what the same link has made before. A compiler cache keeps
// no links, and Binaryen takes half a minute for a module.
//   node scripts/cached-link.mjs em++ ARGUMENT...
// WGEMM_LINK_CACHE names the folder that keeps them. Without it, each link runs.
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

const kept = 60; // links, of 0.2 to 20 MB
const root = dirname(import.meta.dirname);
const [linker, ...words] = process.argv.slice(2);
const folder = process.env.WGEMM_LINK_CACHE;

/** The files that a link makes: the glue, the module, and the map if there is one. */
const output = words[words.indexOf('-o') + 1];
const files = [
  output,
  output.replace(/\.\w+$/, '.wasm'),
  ...words.flatMap((word) => /^-Wl,-Map=(.*)$/.exec(word)?.[1] ?? []),
];

/**
 * A hash of everything that a link depends on; undefined if it has inputs that no word names, and
 * for CMake's trial programs, whose names differ each time.
 */
function keyOf() {
  const version = join(dirname(linker), 'emscripten-version.txt');
  if (!existsSync(version) || !/\.[cm]js$/.test(output)) return undefined;
  if (words.some((word) => word.startsWith('@'))) return undefined;
  // EMBIND_AOT runs the module by Node.
  const hash = createHash('sha256').update(readFileSync(version)).update(process.version);
  for (const word of words) {
    hash.update(`\0${word.replaceAll(root, '')}\0`);
    if (existsSync(word) && statSync(word).isFile() && word !== output)
      hash.update(readFileSync(word));
  }
  return hash.digest('hex').slice(0, 32);
}

function link() {
  const { status } = spawnSync(linker, words, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

function keep(at) {
  // Another link may keep the same, and a link that is interrupted must not leave half of it.
  const unfinished = `${at}-${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  files.forEach((file, i) => copyFileSync(file, join(unfinished, String(i))));
  try {
    renameSync(unfinished, at);
  } catch {
    rmSync(unfinished, { recursive: true });
  }
  const all = readdirSync(folder).map((name) => join(folder, name));
  const ageOf = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const ages = new Map(all.map((path) => [path, ageOf(path)]));
  for (const old of all.sort((a, b) => ages.get(b) - ages.get(a)).slice(kept))
    rmSync(old, { recursive: true, force: true });
}

const key = folder ? keyOf() : undefined;
const at = key && join(folder, key);
if (at && existsSync(at)) {
  files.forEach((file, i) => copyFileSync(join(at, String(i)), file));
  utimesSync(at, new Date(), new Date());
} else {
  link();
  if (at) keep(at);
}
