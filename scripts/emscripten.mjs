// Finds an Emscripten that is new enough. On Debian 12, puts the Emscripten of Debian 13 into the
// cache.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { downloadPackages, unpackPackage } from './debian.mjs';
import { cache, fail, onPath, query, run } from './run.mjs';

/**
 * The first with the final opcodes of relaxed SIMD and with EMBIND_AOT. CONTRIBUTING.md and
 * cmake/emscripten-toolchain.cmake state it too.
 */
export const oldest = '3.1.69';
/** The last number counts our changes to the folder. */
const prefix = join(cache, 'emscripten-3.1.69-1');
const packages = ['emscripten=3.1.69+dfsg-3', 'binaryen=120-4', 'libc6', 'libstdc++6', 'libgcc-s1'];
/** The system libraries for code that is linked at run time: most of the 1.7 GB. */
const unused = ['pic', 'lto-pic'].map((name) => `--exclude=*/wasm32-emscripten/${name}`);
const llvm = '/usr/lib/llvm-19/bin';

// The parser that Emscripten uses to optimize its JavaScript. Debian packages it separately.
const acorn = {
  version: '8.15.0',
  integrity:
    'sha512-NZyJarBfL7nWwIq+FDL6Zp/yHEhePMNnnJ0y3qfieCrmNvYct8uvtiV41UvlSe6apAfk0fY1Fb' +
    'Wx+NwfmpvtTg==',
};

/**
 * The folder of an Emscripten that can build this project: the machine's own, else the one in the
 * cache.
 */
export function findEmscripten() {
  const ours = emscriptenIn(prefix);
  return ownEmscripten() ?? (existsSync(join(ours, 'emcc')) ? ours : undefined);
}

function emscriptenIn(folder) {
  return join(folder, 'usr', 'share', 'emscripten');
}

function ownEmscripten() {
  const { EMSDK } = process.env;
  const candidates = [EMSDK && join(EMSDK, 'upstream', 'emscripten', 'emcc'), onPath('emcc')];
  for (const emcc of candidates) {
    if (!emcc || !existsSync(emcc)) continue;
    // Packagers put a wrapper on PATH. em-config knows the folder, but starting Python is slow.
    let folder = dirname(realpathSync(emcc));
    if (!versionOf(folder)) folder = query('em-config', ['EMSCRIPTEN_ROOT'])?.trim() ?? folder;
    if (isNewEnough(versionOf(folder))) return folder;
  }
  return undefined;
}

function versionOf(folder) {
  const file = join(folder, 'emscripten-version.txt');
  return existsSync(file) ? /\d+\.\d+\.\d+/.exec(readFileSync(file, 'utf8'))?.[0] : undefined;
}

function isNewEnough(version) {
  if (!version) return false;
  const [found, least] = [version, oldest].map((text) => text.split('.').map(Number));
  const differs = found.findIndex((number, i) => number !== least[i]);
  return differs < 0 || found[differs] > least[differs];
}

export async function provideEmscripten() {
  const partial = `${prefix}.partial`;
  const downloads = join(partial, 'downloads');
  const unpacked = join(partial, 'prefix');
  const label = 'setup: downloading Emscripten, 247 MB';
  const debs = await downloadPackages(label, packages, downloads, { release: 'trixie' });

  console.log('setup: unpacking Emscripten');
  rmSync(unpacked, { recursive: true, force: true });
  mkdirSync(unpacked, { recursive: true });
  for (const deb of debs) await unpackPackage(deb, unpacked, unused);
  wrapBinaryen(unpacked);
  const home = emscriptenIn(unpacked);
  writeFileSync(
    join(home, '.emscripten'),
    `LLVM_ROOT = '${llvm}'
BINARYEN_ROOT = '${join(prefix, 'binaryen')}'
NODE_JS = 'node'
FROZEN_CACHE = True # it holds all system libraries
`,
  );
  await addAcorn(home);
  rmSync(prefix, { recursive: true, force: true });
  renameSync(unpacked, prefix);
  rmSync(partial, { recursive: true, force: true });

  if (!query(join(emscriptenIn(prefix), 'emcc'), ['--version'])) {
    rmSync(prefix, { recursive: true, force: true });
    fail('The unpacked Emscripten does not start: install emsdk, set EMSDK, and run this again.');
  }
}

/** Binaryen's programs are linked with trixie's libc: they need it and its loader. */
function wrapBinaryen(folder) {
  const triplet = readdirSync(join(folder, 'usr', 'lib')).find((name) =>
    name.endsWith('-linux-gnu'),
  );
  const libraries = join('usr', 'lib', triplet);
  const loader = readdirSync(join(folder, libraries)).find((name) =>
    /^ld-linux.*\.so\.\d+$/.test(name),
  );
  const wrappers = join(folder, 'binaryen', 'bin');
  mkdirSync(wrappers, { recursive: true });
  for (const program of readdirSync(join(folder, 'usr', 'bin')).filter((name) =>
    name.startsWith('wasm'),
  )) {
    const wrapper = join(wrappers, program);
    const at = (...path) => `'${join(prefix, ...path)}'`;
    const command = [
      at(libraries, loader),
      '--library-path',
      at(libraries),
      at('usr/bin', program),
    ];
    writeFileSync(wrapper, `#!/bin/sh\nexec ${command.join(' ')} "$@"\n`);
    chmodSync(wrapper, 0o755);
  }
}

/** Installs by a lock file, so that npm refuses any package except the pinned one. */
async function addAcorn(folder) {
  const dependencies = { acorn: acorn.version };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
  writeFileSync(
    join(folder, 'package-lock.json'),
    JSON.stringify({
      lockfileVersion: 3,
      packages: { '': { dependencies }, 'node_modules/acorn': acorn },
    }),
  );
  await run('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], {
    cwd: folder,
    quiet: true,
    bound: true,
    otherwise:
      'npm could not install acorn, which Emscripten needs: check the network and run this again.',
  });
}
