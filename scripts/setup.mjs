// Installs everything that a build needs, on a machine that has only Node and, on Debian, root.
// Each step checks whether it is done, and then says nothing. A step that was interrupted starts
// again: what it left is never taken for a result.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { findEmulator, provideEmulator } from './arm64.mjs';
import { findBrowser, variableOf } from './browsers.mjs';
import { debianVersion, forget, showDownload, unpackSource } from './debian.mjs';
import { findEmscripten, oldest, provideEmscripten } from './emscripten.mjs';
import { cache, fail, main, onPath, query, root, run, withLock } from './run.mjs';

/** Folders with packages that only some tests need, so that most work needs only the project's. */
export const npmFolders = {
  package: join('tests', 'package'),
  runtimes: join('tests', 'package', 'runtimes'),
  arm64: join('tests', 'arm64', 'node'),
  search: join('tests', 'bench', 'search', 'packages'),
  site: 'docs',
  demo: join('examples', 'demo'),
};

/**
 * @param needs any of 'wasm', 'native', 'blas', 'ci', 'clang', 'fuzz', 'lint', 'mca', 'chromium',
 *   'firefox', 'webkit', 'release', 'package', 'runtimes', 'arm64', 'search', 'site', 'demo'. The
 *   project's npm packages are always set up.
 */
export async function setUp(...needs) {
  const folders = Object.keys(npmFolders).flatMap((need) =>
    needs.includes(need) ? [join(root, npmFolders[need])] : [],
  );
  const steps = [
    [npmIsMissing, installNpmPackages],
    ...folders.map((folder) => [() => !matchesLock(folder), () => installFrom(folder)]),
    [() => missingPackages(needs).length > 0, () => installPackages(missingPackages(needs))],
    [() => needs.includes('wasm') && !findEmscripten(), setUpEmscripten],
    [() => needs.includes('arm64') && !findEmulator(), provideEmulator],
    [
      () =>
        needs.some((need) => need === 'wasm' || need === 'native') && missingSources().length > 0,
      downloadSources,
    ],
  ];
  if (!steps.some(([isMissing]) => isMissing())) return;
  await withLock(async () => {
    for (const [isMissing, provide] of steps) {
      if (isMissing()) await provide();
    }
    forget();
  });
}

// --- npm -----------------------------------------------------------------------------------------

function npmIsMissing() {
  return !matchesLock(root) || !projectNode();
}

/** npm writes this note when everything is installed. */
function matchesLock(folder) {
  const note = join(folder, 'node_modules', '.package-lock.json');
  if (!existsSync(note)) return false;
  const installed = JSON.parse(readFileSync(note, 'utf8')).packages;
  const wanted = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(wanted).every(([path, { version, optional }]) =>
    path === '' ? true : installed[path] ? installed[path].version === version : optional,
  );
}

/**
 * Version of the Node that is a development dependency: the scripts need a newer one than the
 * package. Its install script downloads the binary.
 */
function projectNode() {
  return query(join(root, 'node_modules', '.bin', 'node'), ['--version'], {
    shell: process.platform === 'win32',
  });
}

async function installNpmPackages() {
  await installFrom(root);
  if (!projectNode()) {
    fail(
      'The npm package `node` came without its binary: ' +
        'allow its install script with `npm rebuild node --ignore-scripts=false`.',
    );
  }
}

export async function installFrom(folder) {
  const named = relative(root, folder);
  console.log(`setup: installing npm packages${named && ` of ${named}`}`);
  await noOneWorksIn(join(folder, 'node_modules'));
  if (takePackages(folder) && matchesLock(folder)) return;
  await run('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: folder,
    quiet: true,
    bound: true,
    otherwise:
      `\`npm ci\`${named && ` in ${named}`} failed: ` +
      'check the network and the messages above, and run this again.',
  });
  if (folder !== root || projectNode()) keepPackages(folder);
}

/**
 * Where the packages of a folder are kept for later clones with the same lock. Undefined without
 * WGEMM_PACKAGES_CACHE.
 */
function keptPackages(folder) {
  const kept = process.env.WGEMM_PACKAGES_CACHE;
  if (!kept) return undefined;
  const hash = createHash('sha256').update([process.platform, process.arch].join());
  for (const file of ['package.json', 'package-lock.json'])
    hash.update(readFileSync(join(folder, file)));
  const name = relative(root, folder).replaceAll(sep, '-') || 'root';
  return join(kept, name, hash.digest('hex').slice(0, 16));
}

/** Makes hard links to all files: copies take five times as long. */
function linkTree(from, to) {
  if (query('cp', ['-al', from, to]) === undefined) return false;
  // npm writes into this file. It replaces all others by new ones.
  const note = join(to, '.package-lock.json');
  const text = readFileSync(note);
  rmSync(note);
  writeFileSync(note, text);
  return true;
}

/** Takes the packages from where they are kept. Returns whether they were there. */
function takePackages(folder) {
  const kept = keptPackages(folder);
  if (!kept || !existsSync(kept)) return false;
  const modules = join(folder, 'node_modules');
  rmSync(modules, { recursive: true, force: true });
  if (linkTree(kept, modules)) return true;
  rmSync(modules, { recursive: true, force: true });
  return false;
}

/** Keeps the packages of a folder, and no longer packages of another lock. */
function keepPackages(folder) {
  const kept = keptPackages(folder);
  if (!kept || !matchesLock(folder)) return;
  const unfinished = `${dirname(kept)}-${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  if (linkTree(join(folder, 'node_modules'), join(unfinished, basename(kept)))) {
    rmSync(dirname(kept), { recursive: true, force: true });
    renameSync(unfinished, dirname(kept));
  } else {
    // cp lacks the option, or the cache is on another disk.
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/**
 * Waits for install scripts of an npm that was killed. They outlive it, and would write into what
 * the next one installs.
 */
async function noOneWorksIn(folder) {
  const works = (process) => {
    try {
      return readlinkSync(join('/proc', process, 'cwd')).startsWith(folder);
    } catch {
      return false; // it ended, or belongs to another user
    }
  };
  const isBusy = () =>
    existsSync('/proc/self/cwd') &&
    readdirSync('/proc').some((name) => /^\d+$/.test(name) && works(name));
  for (let waited = 0; waited < 60 && isBusy(); waited++) await sleep(500);
}

// --- system packages -----------------------------------------------------------------------------

/** Debian package -> what needs it, and the program or browser that another source may provide. */
const packages = {
  cmake: { for: ['wasm', 'native'], program: 'cmake' },
  'ninja-build': { for: ['wasm', 'native'], program: 'ninja' },
  googletest: { for: ['wasm', 'native'], path: '/usr/src/googletest', debianOnly: true },
  'xz-utils': { for: ['wasm', 'native'], program: 'xz', debianOnly: true },
  python3: { for: ['wasm'], program: 'python3' },
  'g++': { for: ['native'], program: 'c++' },
  clang: { for: ['clang'], program: 'clang++' },
  'libclang-rt-dev': { for: ['clang'], debianOnly: true }, // the sanitizers of clang
  ccache: { for: ['ci'], debianOnly: true }, // compilers run without it, too
  'libeigen3-dev': { for: ['ci'], debianOnly: true }, // the tests run without it, too
  'libblas-test': { for: ['ci'], debianOnly: true }, // the tests run without it, too
  'libsimde-dev': { for: ['native'], debianOnly: true },
  'libopenblas-dev': { for: ['blas'], debianOnly: true },
  'clang-19': { for: ['fuzz'], program: 'clang++-19' },
  'libclang-rt-19-dev': { for: ['fuzz'], debianOnly: true },
  'clang-format-19': { for: ['lint'], program: 'clang-format-19' },
  'llvm-19': { for: ['mca'], program: 'llvm-mca-19' },
  codespell: { for: ['lint'], program: 'codespell' },
  chromium: { for: ['chromium'], browser: 'chromium' },
  'firefox-esr': { for: ['firefox'], browser: 'firefox' },
  'webkit2gtk-driver': { for: ['webkit'], browser: 'webkit' },
  xvfb: { for: ['webkit'], program: 'Xvfb' },
  faketime: { for: ['release'], program: 'faketime', debianOnly: true },
};
const packagesOfOurEmscripten = ['clang-19', 'lld-19', 'llvm-19'];

function missingPackages(needs) {
  const onDebian = onPath('dpkg-query') && onPath('apt-get');
  const wanted = Object.keys(packages).filter((name) =>
    packages[name].for.some((need) => needs.includes(need)),
  );
  if (needs.includes('wasm') && debianVersion()) {
    const found = findEmscripten();
    if (debianVersion() >= 13 && !found) wanted.push('emscripten');
    if (debianVersion() === 12 && (!found || found.startsWith(cache)))
      wanted.push(...packagesOfOurEmscripten);
  }
  if (!onDebian) return wanted.filter((name) => !packages[name].debianOnly && !isElsewhere(name));
  if (wanted.length === 0) return [];
  // dpkg-query fails if it does not know a package, and still lists the others.
  const states = new Map(
    query('sh', [
      '-c',
      'dpkg-query -W -f \'${Package} ${db:Status-Status}\\n\' "$@" || true',
      'sh',
      ...wanted,
    ])
      .split('\n')
      .map((line) => line.split(' ')),
  );
  // Half-installed packages (an interrupted apt) count as missing. Programs of packages that dpkg
  // does not know may have been installed otherwise.
  return wanted.filter((name) => {
    const state = states.get(name) ?? 'not-installed';
    return state !== 'installed' && !(state === 'not-installed' && isElsewhere(name));
  });
}

/** Whether another source provides the program or browser of a package. */
function isElsewhere(name) {
  const { program, browser } = packages[name] ?? {};
  return browser
    ? findBrowser(browser) !== undefined
    : program !== undefined && onPath(program) !== undefined;
}

async function installPackages(names) {
  const list = names.join(' ');
  if (!onPath('apt-get')) {
    const variables = names.flatMap((name) =>
      packages[name]?.browser ? [variableOf(packages[name].browser)] : [],
    );
    const or =
      variables.length > 0 ? ` (or name the browser's program in ${variables.join(', ')})` : '';
    fail(`This machine lacks: ${list}. Install them${or} and run this again.`);
  }
  if (process.getuid() !== 0) fail(`Run \`sudo apt-get install ${list}\` and then this again.`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const options = ['-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3'];
  console.log(`setup: installing Debian packages: ${list}`);
  const update = () =>
    run('apt-get', [...options, '-qq', 'update'], {
      env,
      quiet: true,
      bound: true,
      otherwise:
        '`apt-get update` failed: ' +
        'check the network and the apt sources of this machine, and run this again.',
    });
  await update().catch(async () => {
    await sleep(5000); // another apt may have been running
    await update();
  });
  // After an apt was interrupted, the next one refuses to work until this is done.
  query('dpkg', ['--configure', '-a'], { env: { ...process.env, ...env } });
  await showDownload('setup: downloading packages', (onStatus) =>
    run(
      'apt-get',
      [...options, '-o', 'APT::Status-Fd=3', 'install', '-y', '--no-install-recommends', ...names],
      {
        env,
        quiet: true,
        onStatus,
        otherwise:
          `\`apt-get install ${list}\` failed: ` + 'see its messages above, and run this again.',
      },
    ),
  );
}

// --- Emscripten and sources ----------------------------------------------------------------------

async function setUpEmscripten() {
  if (debianVersion() === 12) return provideEmscripten();
  fail(
    `No Emscripten of version ${oldest} or later is here: ` +
      'install emsdk (or `emcc` on PATH), set EMSDK, and run this again.',
  );
}

/**
 * Sources that cmake/Dependencies.cmake takes from the cache. If they are absent, and on other
 * systems, it downloads the same commits itself.
 */
const sources = [
  {
    name: 'xnnpack',
    version: '0.0~git20241108.4ea82e5',
    sha256: '90bde2caef0f880f627bab0dc805a86c4b8070cd98e3243db3046ab3f3be1a99',
    folder: 'xnnpack-4ea82e5',
  },
];

/** Names of folders in the cache, without the version that follows. */
export const cached = ['arm64', 'emscripten', ...sources.map(({ name }) => name)];

function missingSources() {
  if (!debianVersion()) return [];
  return sources.filter(
    ({ name, folder }) =>
      !process.env[`${name.toUpperCase()}_SOURCE_DIR`] && !existsSync(join(cache, folder)),
  );
}

async function downloadSources() {
  for (const source of missingSources()) {
    console.log(`setup: downloading the sources of ${source.folder}`);
    const partial = join(cache, `${source.folder}.partial`);
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial, { recursive: true });
    await unpackSource(source, partial, 'trixie');
    // Some tarballs have one top folder, others none.
    const [top, ...others] = readdirSync(partial);
    renameSync(others.length > 0 ? partial : join(partial, top), join(cache, source.folder));
    rmSync(partial, { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  await main(() => setUp('wasm', 'native', 'lint'));
