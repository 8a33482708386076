// Proves that the commit can be released, and writes what is released to build/release/: the
// tarball, SHA256SUMS, the SBOM wgemm.cdx.json, and all rows that the lab ever had, wgemm-lab.tsv.
//   npm run release -- --set 0.2.0   only writes the version, everywhere
//   npm run release -- --check
//     --against PATH  compares one build with a folder or a tarball of the package, instead of
//                     making a second build
// The commit is built in two clones, in folders of other names, the second in another year. Both
// must give the same bytes, and dist/ of this checkout must have them too.
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { findComponents, sbomOf, wrongInNotice } from './components.mjs';
import { findEmscripten } from './emscripten.mjs';
import { cache, fail, main, onPath, query, root, run } from './run.mjs';
import { setUp } from './setup.mjs';
import { findVersions, isLater, setVersion, wrongVersions } from './versions.mjs';

const out = join(root, 'build', 'release');
const ask = (program, ...args) =>
  query(program, args) ?? fail(`release: \`${[program, ...args].join(' ')}\` fails.`);

function readArguments() {
  const options = {
    check: { type: 'boolean', default: false },
    against: { type: 'string' },
    set: { type: 'string' },
  };
  let values;
  try {
    ({ values } = parseArgs({ options }));
  } catch ({ message }) {
    fail(`release: ${message}`);
  }
  if (values.set !== undefined) return { version: readVersion(values.set) };
  if (!values.check) {
    const check = '--check, and with that --against PATH';
    fail(`release: it publishes nothing; it takes --set VERSION, or ${check}.`);
  }
  if (values.against === undefined) return {};
  const against = resolve(process.env.INIT_CWD ?? '', values.against);
  if (!existsSync(against))
    fail(
      `release: --against is ${values.against}, which is not here; it takes a folder or a .tgz.`,
    );
  return { against };
}

/** A version to set, which must come after the one of this checkout. */
function readVersion(version) {
  const { version: now } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  if (!/^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}$/.test(version))
    fail(`release: --set is '${version}'; it must be three numbers such as 0.2.0.`);
  if (!isLater(version, now)) fail(`release: --set is ${version}; it must come after ${now}.`);
  return version;
}

/** Fails with all sentences, if there are any. */
function refuseIf(wrong) {
  if (wrong.length > 0) fail(`release: ${wrong.join('\n  ')}`);
}

const passed = (what, told) => console.log(`release: ${what}: ${told}`);

// --- what needs no build -------------------------------------------------------------------------

function checkTree() {
  const changed = ask('git', 'status', '--porcelain').split('\n').filter(Boolean);
  refuseIf(
    changed.map((line) => `${line.slice(3)} is not as it was committed: commit it, or restore it.`),
  );
  const commit = ask('git', 'rev-parse', 'HEAD').trim();
  passed('commit', commit);
  return commit;
}

/** @returns the tag of a release that the commit has */
function tagOf(version) {
  const tags = ask('git', 'tag', '--points-at', 'HEAD', 'v*').split('\n').filter(Boolean);
  refuseIf(
    tags
      .filter((tag) => tag !== `v${version}`)
      .map((tag) => `The commit has the tag ${tag}, but its version is ${version}.`),
  );
  return tags[0];
}

function checkVersions() {
  refuseIf(wrongVersions());
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const tag = tagOf(version);
  const files = new Set(findVersions('wgemm').map(({ file }) => file));
  passed('versions', `${version} in ${files.size} files${tag ? ` and in the tag ${tag}` : ''}`);
  return { version, tag };
}

/**
 * Checks that the newest section is of this version. If the commit has a tag, the section must have
 * a date that has come.
 */
function checkChangelog({ version, tag }) {
  const [, heading, state, body] =
    /^(## (?:[\d.]+) \((.+)\))\n([^]*?)(?=^## |$(?![^]))/m.exec(
      readFileSync('CHANGELOG.md', 'utf8'),
    ) ?? fail("release: CHANGELOG.md has no section such as '## 0.1.0 (2026-11-30)'.");
  const entries = (body.match(/^- /gm) ?? []).length;
  const today = new Date().toISOString().slice(0, 10);
  const isDay = /^\d{4}-\d\d-\d\d$/.test(state);
  refuseIf([
    ...(heading.startsWith(`## ${version} (`)
      ? []
      : [`CHANGELOG.md begins with '${heading}', but the version is ${version}.`]),
    ...(isDay || state === 'unreleased'
      ? []
      : [`CHANGELOG.md says '${heading}': write a date such as ${today}, or unreleased.`]),
    ...(isDay && state > today ? [`CHANGELOG.md says '${heading}', which is after today.`] : []),
    ...(tag && !isDay ? [`CHANGELOG.md says '${heading}', but the commit has a tag.`] : []),
    ...(entries > 0 ? [] : [`CHANGELOG.md has no entry below '${heading}'.`]),
  ]);
  passed('changelog', `${entries} entries of ${version}, ${state}`);
}

// --- builds --------------------------------------------------------------------------------------

/**
 * Builds a commit in a clone, and packs it.
 *
 * @param isLater whether the clock is 400 days ahead
 * @returns { checkout, tarball }
 */
async function buildIn(folder, commit, isLater) {
  const checkout = join(folder, 'wgemm');
  mkdirSync(folder, { recursive: true });
  for (const args of [
    ['clone', '--quiet', '--no-local', '--no-checkout', root, checkout],
    ['-C', checkout, 'checkout', '--quiet', '--detach', commit],
  ])
    await run('git', args, { otherwise: `release: ${commit} cannot be cloned into ${checkout}.` });
  // Sources of dependencies are in another folder, too.
  const itsCache = join(folder, 'cache');
  symlinkSync(cache, itsCache, 'junction');
  // A compiler cache would compile once, and compare that with itself.
  const env = { WGEMM_CACHE: itsCache, CI: 'true', CCACHE_DISABLE: '1', WGEMM_LINK_CACHE: '' };
  // While the clock is right: with a wrong one, servers seem to have old certificates.
  await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel', 'error'], {
    cwd: checkout,
    otherwise: `release: \`npm ci\` fails in ${checkout}: check the network.`,
  });
  const faketime = isLater && onPath('faketime');
  if (isLater && !faketime)
    console.log('release: faketime is not here, so both builds have the same date');
  await run(
    faketime || 'node',
    [...(faketime ? ['-f', '+400d', 'node'] : []), 'scripts/build.mjs'],
    {
      cwd: checkout,
      // Only the date differs: programs still measure how long they wait, and compare times of
      // files.
      env: {
        ...env,
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
        DONT_FAKE_MONOTONIC: '1',
        NO_FAKE_STAT: '1',
      },
      otherwise: `release: the commit cannot be built in ${checkout}: see above why.`,
    },
  );
  const packed = query('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: checkout,
    shell: process.platform === 'win32',
  });
  if (!packed) fail(`release: \`npm pack\` fails in ${checkout}.`);
  return { checkout, tarball: join(folder, JSON.parse(packed)[0].filename) };
}

const isFile = (path) => statSync(path).isFile();

/** Files of a folder, by their paths in it. */
function filesIn(folder) {
  return new Map(
    readdirSync(folder, { recursive: true })
      .filter((name) => isFile(join(folder, name)))
      .map((name) => [name.replaceAll('\\', '/'), readFileSync(join(folder, name))]),
  );
}

/** Files of a tarball, by their paths in the package. */
async function filesOf(tarball, top) {
  const folder = mkdtempSync(join(top, 'unpacked-'));
  await run('tar', ['-xzf', tarball, '-C', folder], {
    otherwise: `release: ${tarball} cannot be unpacked.`,
  });
  return filesIn(join(folder, 'package'));
}

/** @returns a sentence per file that differs between the package as it was built and another */
function differences(files, others, nameOfOthers) {
  const wrong = [];
  for (const name of new Set([...files.keys(), ...others.keys()])) {
    const [one, other] = [files.get(name), others.get(name)];
    if (!other) wrong.push(`${name} is not in ${nameOfOthers}.`);
    else if (!one) wrong.push(`${name} is in ${nameOfOthers}, but a build does not make it.`);
    else if (!one.equals(other)) {
      const at = one.findIndex((byte, i) => byte !== other[i]);
      const from = at < 0 ? one.length : at;
      wrong.push(
        `${name} in ${nameOfOthers} differs from a build of the commit, from byte ${from} on.`,
      );
    }
  }
  return wrong;
}

/**
 * If this checkout has a dist/, someone may publish it by mistake, so it must have the bytes of a
 * build.
 */
function checkOwnDist(files) {
  const dist = join(root, 'dist');
  if (!existsSync(dist)) return;
  const built = new Map([...files].filter(([name]) => name.startsWith('dist/')));
  const own = new Map(Array.from(filesIn(dist), ([name, bytes]) => [`dist/${name}`, bytes]));
  refuseIf(differences(built, own, 'this checkout'));
  passed('dist/ of this checkout', `${own.size} files have the bytes of a build`);
}

async function checkAgainst(files, against, top) {
  let others;
  if (!isFile(against)) {
    // A checkout has more, such as sources.
    const isDist = !existsSync(join(against, 'package.json'));
    const wanted = isDist
      ? [...files.keys()].filter((name) => name.startsWith('dist/'))
      : files.keys();
    const pathOf = (name) => join(against, isDist ? name.slice('dist/'.length) : name);
    others = new Map(
      [...wanted]
        .filter((name) => existsSync(pathOf(name)))
        .map((name) => [name, readFileSync(pathOf(name))]),
    );
    if (isDist) files = new Map([...files].filter(([name]) => name.startsWith('dist/')));
  } else others = await filesOf(against, top);
  refuseIf(differences(files, others, against));
  passed('against', `${files.size} files have the bytes of ${against}`);
}

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

// --- all of it -----------------------------------------------------------------------------------

async function check({ against }, top) {
  const commit = checkTree();
  checkChangelog(checkVersions());
  await setUp('wasm', 'release');

  const first = await buildIn(join(top, 'a'), commit, false);
  const files = await filesOf(first.tarball, top);
  checkOwnDist(files);
  if (against) await checkAgainst(files, against, top);
  else {
    const second = await buildIn(join(top, 'in-a-folder-of-a-longer-name'), commit, true);
    refuseIf(differences(files, await filesOf(second.tarball, top), 'the second build'));
    if (!readFileSync(first.tarball).equals(readFileSync(second.tarball)))
      fail('release: two tarballs of the same files differ: npm packs them in another way.');
    passed('two builds', `${files.size} files and the tarball have the same bytes`);
  }

  const { checkFiles } = await import('../tests/package/tarball.mjs');
  passed(
    'budgets',
    checkFiles([...files.keys()].sort(), (name) => files.get(name)),
  );

  const found = findComponents(first.checkout);
  const textOf = (name) => readFileSync(join(root, name), 'utf8');
  refuseIf(wrongInNotice(textOf('NOTICE'), textOf('cmake/Dependencies.cmake'), found));
  passed('licences', `NOTICE names ${[...found.keys()].map(({ name }) => name).join(', ')}`);

  const tarball = readFileSync(first.tarball);
  const sbom = sbomOf(found, {
    checkout: first.checkout,
    emscripten: findEmscripten(),
    manifest: JSON.parse(files.get('package.json')),
    time: ask('git', 'show', '--no-patch', '--format=%cI', commit).trim(),
    sha256: sha256(tarball),
  });
  write(first.tarball, files, `${JSON.stringify(sbom, undefined, 2)}\n`);
}

/** All rows that docs/lab ever had, each once, in the order of their days. */
function labOf() {
  const added = ask('git', 'log', '-p', '--reverse', '--format=', '--', 'docs/lab').split('\n');
  const rows = added.filter((line) => /^\+\d{4}-\d\d-\d\d\t/.test(line));
  const head = added.find((line) => line.startsWith('+date\t'));
  return `${[head, ...[...new Set(rows)].sort()].map((line) => line.slice(1)).join('\n')}\n`;
}

/** SHA256SUMS names the files of the package as `tar -x` writes them. */
function write(tarball, files, sbom) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const name = basename(tarball);
  copyFileSync(tarball, join(out, name));
  writeFileSync(join(out, 'wgemm.cdx.json'), sbom);
  const lab = labOf();
  writeFileSync(join(out, 'wgemm-lab.tsv'), lab);
  const sums = [
    [name, readFileSync(tarball)],
    ['wgemm.cdx.json', sbom],
    ['wgemm-lab.tsv', lab],
    ...[...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, it]) => [`package/${path}`, it]),
  ].map(([path, bytes]) => `${sha256(bytes)}  ${path}\n`);
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''));
  passed(
    'wrote',
    `build/release/: ${name}, wgemm.cdx.json, wgemm-lab.tsv, SHA256SUMS (${sums.length} files)`,
  );
}

await main(async () => {
  const options = readArguments();
  if (options.version) {
    passed('versions', `${options.version} in ${setVersion(options.version).join(', ')}`);
    return;
  }
  const top = mkdtempSync(join(tmpdir(), 'wgemm-release-'));
  try {
    await check(options, top);
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
});
