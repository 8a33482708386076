// Brings files of a Debian release to a machine that runs Debian 12 or later, and leaves its system
// unchanged. apt gets a sources list, package lists and a status file of our own. The script
// unpacks the downloads into our cache. apt checks signatures against the machine's own Debian
// keys, and uses the machine's own mirror.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache, fail, onPath, progress, query, run } from './run.mjs';

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
const states = join(cache, 'apt');

/** 12, 13, ...; Infinity for testing and unstable; undefined if this is not Debian. */
export function debianVersion() {
  const info = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  if (!/^ID="?debian"?$/m.test(info) || !onPath('apt-get')) return undefined;
  return Number(/^VERSION_ID="?(\d+)/m.exec(info)?.[1] ?? Infinity);
}

function mirror(release) {
  const targets =
    query('apt-get', [
      'indextargets',
      '--format',
      '$(REPO_URI) $(RELEASE) $(COMPONENT)',
      'Created-By: Packages',
    ]) ?? '';
  const codename = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const releases = [codename, 'oldstable', 'stable', 'testing', 'unstable', 'sid', release];
  const found = targets
    .split('\n')
    .map((line) => line.split(' '))
    .find(([, name, component]) => releases.includes(name) && component === 'main');
  return (
    found?.[0] ??
    fail('apt knows no Debian mirror: add your mirror to /etc/apt/sources.list and run this again.')
  );
}

const ready = new Map(); // by release, so that each state is made once per run

/**
 * @param release its code name, such as 'trixie'
 * @param foreign an architecture whose packages are needed besides this machine's own
 * @returns { state: the folder, options: for every apt-get }
 */
function prepare(release, foreign) {
  if (!ready.has(release)) ready.set(release, makeState(release, foreign));
  return ready.get(release);
}

async function makeState(release, foreign) {
  const state = join(states, release);
  const architectures = [query('dpkg', ['--print-architecture'])?.trim(), foreign].filter(Boolean);
  const options = [
    ['Dir::Etc::SourceList', join(state, 'sources.list')],
    ['Dir::Etc::SourceParts', '/dev/null'],
    ['Dir::Etc::Preferences', '/dev/null'],
    ['Dir::Etc::PreferencesParts', '/dev/null'],
    ['Dir::State', state],
    ['Dir::State::Status', join(state, 'status')],
    ['Dir::Cache', state],
    ['APT::Architectures', architectures.join()],
    ['APT::Sandbox::User', 'root'], // the _apt user cannot enter a home folder
    ['Acquire::Languages', 'none'],
    ['Acquire::Retries', '3'],
  ].flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  if (!existsSync(keyring)) {
    fail('The keys of Debian are missing: run `apt-get install debian-archive-keyring` as root.');
  }
  mkdirSync(join(state, 'lists', 'partial'), { recursive: true });
  mkdirSync(join(state, 'archives', 'partial'), { recursive: true });
  const uri = mirror(release);
  const what = `The package lists of Debian ${release}`;
  const line = (type) => `${type} [signed-by=${keyring}] ${uri} ${release} main\n`;
  writeFileSync(join(state, 'sources.list'), line('deb') + line('deb-src'));
  writeFileSync(join(state, 'status'), '');
  await run('apt-get', [...options, '-qq', 'update'], {
    quiet: true,
    bound: true,
    otherwise: `${what} could not be read: check the network and run this again.`,
  });
  return { state, options };
}

/** Shows apt's own report of a download in percent. */
export async function showDownload(label, download) {
  const bar = await progress(label);
  try {
    await download((line) => {
      const [kind, , percent] = line.split(':');
      if (kind === 'dlstatus') bar.set(Number(percent));
    });
  } finally {
    bar.stop();
  }
}

/**
 * Downloads packages (name, name:architecture or name=version) into `folder`, and continues an
 * earlier run that was interrupted. Returns their paths.
 */
export async function downloadPackages(label, packages, folder, { release, foreign }) {
  const { options } = await prepare(release, foreign);
  mkdirSync(folder, { recursive: true });
  await showDownload(label, (onStatus) =>
    run('apt-get', [...options, '-o', 'APT::Status-Fd=3', 'download', ...packages], {
      cwd: folder,
      quiet: true,
      bound: true,
      onStatus,
      otherwise:
        `The download of ${packages[0]} failed: ` +
        'check the network and the space on the disk, and run this again.',
    }),
  );
  return readdirSync(folder)
    .filter((name) => name.endsWith('.deb'))
    .map((name) => join(folder, name));
}

/** Unpacks a package into `folder`. `select`: arguments of tar that choose its files. */
export function unpackPackage(deb, folder, select = []) {
  const otherwise = `${deb} could not be unpacked: check the space on the disk and run this again.`;
  const script = `setpriv --pdeathsig KILL dpkg-deb --fsys-tarfile "$1" |
  setpriv --pdeathsig KILL tar -x -C "$2" "\${@:3}"`;
  const args = ['-o', 'pipefail', '-c', script, 'unpack', deb, folder, ...select];
  return run('bash', args, { quiet: true, bound: true, otherwise });
}

/** Unpacks the upstream sources of a package into `folder`, which must be empty. */
export async function unpackSource({ name, version, sha256 }, folder, release) {
  const { state, options } = await prepare(release);
  const tarball = `${name}_${version}.orig.tar.xz`;
  // --tar-only, since mirrors may lack the packaging that would come along.
  await run('apt-get', [...options, '-qq', 'source', '--download-only', '--tar-only', name], {
    cwd: state,
    quiet: true,
    bound: true,
    otherwise:
      `The sources of ${name} could not be downloaded: ` + 'check the network and run this again.',
  });
  const path = join(state, tarball);
  const found = existsSync(path)
    ? createHash('sha256').update(readFileSync(path)).digest('hex')
    : 'missing';
  if (found !== sha256) {
    rmSync(path, { force: true });
    fail(
      `${tarball} is not what it must be (SHA-256 ${found}): ` +
        `set ${name.toUpperCase()}_SOURCE_DIR to a copy of your own.`,
    );
  }
  await run('tar', ['-xJf', path, '-C', folder], {
    quiet: true,
    bound: true,
    otherwise: `${tarball} could not be unpacked: check the space on the disk and run this again.`,
  });
}

/** Removes package lists and downloads, which nothing needs once everything is installed. */
export function forget() {
  rmSync(states, { recursive: true, force: true });
  ready.clear();
}
