// Tests the native package as its users see it: the files that `cmake --install` writes, and
// programs that are built against nothing else.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { blockOf, readBlocks } from '../tests/package/pages.mjs';
import { cache, fail, main, query, root, run } from './run.mjs';

/** The page of the guide that has the commands, the CMakeLists.txt and a program. */
const page = 'docs/guide/cpp.md';

const home = join(root, 'build', 'native-home');
const installed = join(home, 'wgemm-install');

const files = [
  'include/wgemm/cblas.h',
  'include/wgemm/dtypes.def',
  'include/wgemm/wgemm.h',
  'lib/cmake/wgemm/wgemmConfig.cmake',
  'lib/cmake/wgemm/wgemmConfigVersion.cmake',
  'lib/cmake/wgemm/wgemmTargets-release.cmake',
  'lib/cmake/wgemm/wgemmTargets.cmake',
  'lib/libwgemm.a',
  'lib/libwgemm_cblas.a',
  'share/doc/wgemm/LICENSE',
  'share/doc/wgemm/NOTICE',
];

const exampleSays = `\
float32   1.25 -1.00 |  0.95  7.00
float32   0.50  5.00 |  0.90  7.00
8 bits    1.25 -0.98 |  0.95  7.01
`;

export async function testNativePackage() {
  await install();
  const said = await runAgainstInstall(
    join(root, 'examples', 'native'),
    join(root, 'build', 'example-native'),
  );
  if (said !== exampleSays) fail(`examples/native prints\n${said}and not\n${exampleSays}`);
  await testPages();
  await testAsSubproject();
  await testOffline();
}

/** Runs the command of the guide: it builds without a preset and installs into the user's home. */
async function install() {
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  await run('sh', ['-e', '-c', blockOf(page, { language: 'sh' }).code], {
    env: { HOME: home, WGEMM_CACHE: cache },
    quiet: true,
    otherwise: `The native library cannot be built and installed as ${page} says: see above why.`,
  });
  const found = readdirSync(installed, { recursive: true })
    .filter((name) => !statSync(join(installed, name)).isDirectory())
    // Some systems call it lib64.
    .map((name) => name.replaceAll('\\', '/').replace(/^lib64\//, 'lib/'));
  const lacking = files.filter((file) => !found.includes(file));
  const beyond = found.filter((file) => !files.includes(file));
  if (lacking.length > 0)
    fail(`The installed native package lacks ${lacking.join(', ')}: see cmake/install.cmake.`);
  if (beyond.length > 0)
    fail(
      `The installed native package has ${beyond.join(', ')}, which does not belong in it: ` +
        'see cmake/install.cmake.',
    );
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const file of found.filter((name) => /\.(cmake|h)$/.test(name))) {
    const text = readFileSync(join(installed, file), 'utf8');
    if (text.includes(root) || text.includes(cache))
      fail(`${file} of the native package names a folder of this machine.`);
    if (/(Version\.cmake|wgemm\.h)$/.test(file) && !text.includes(`"${version}"`)) {
      fail(`${file} of the native package has another version than package.json, ${version}.`);
    }
  }
}

/**
 * Builds the CMakeLists.txt in `source`, of one program, against the installed package and nothing
 * else.
 * @returns what the program prints
 */
async function runAgainstInstall(source, build, prefix = installed) {
  rmSync(build, { recursive: true, force: true }); // a cache would remember another wgemm
  // Warnings show mistakes in an example. CMAKE_PREFIX_PATH hides other packages of this machine.
  const definitions = [
    'CMAKE_BUILD_TYPE=Release',
    `CMAKE_PREFIX_PATH=${prefix}`,
    'CMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Werror',
  ];
  await run(
    'cmake',
    [
      '-S',
      source,
      '-B',
      build,
      '-G',
      'Ninja',
      ...definitions.map((definition) => `-D${definition}`),
    ],
    {
      quiet: true,
      otherwise:
        `CMake could not configure ${source} with the installed wgemm: ` +
        'correct what it says above.',
    },
  );
  await run('cmake', ['--build', build], {
    quiet: true,
    otherwise: `${source} does not build with the installed wgemm: see above why.`,
  });
  const program = /add_executable\((\w+)/.exec(
    readFileSync(join(source, 'CMakeLists.txt'), 'utf8'),
  )?.[1];
  if (!program) fail(`${source} has no add_executable() in its CMakeLists.txt.`);
  const said = query(join(build, program), [], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (said === undefined) fail(`${join(build, program)} fails: see above why, if it says so.`);
  return said;
}

/** The programs of the guide and of an operator card do what they say. */
async function testPages() {
  const { code } = blockOf(page, { language: 'cmake' });
  for (const from of [page, 'docs/operators/integer-products.md']) {
    const source = join(root, 'build', 'page-native');
    rmSync(source, { recursive: true, force: true });
    mkdirSync(source, { recursive: true });
    writeFileSync(join(source, 'CMakeLists.txt'), code);
    const program = blockOf(from, { language: 'cpp' });
    writeFileSync(join(source, 'main.cc'), program.code);
    const said = await runAgainstInstall(source, join(source, 'build'));
    const shown = readBlocks(from).find(
      ({ language, line }) => language === 'text' && line > program.line,
    );
    if (said !== shown?.code)
      fail(`The program of ${from}:${program.line} prints\n${said}and not\n${shown?.code}`);
  }
}

/**
 * In another project wgemm defines the same target, and imposes nothing. Configured only, since a
 * build would take as long as ours did.
 */
async function testAsSubproject() {
  const source = join(root, 'build', 'subproject-native');
  rmSync(source, { recursive: true, force: true });
  mkdirSync(source, { recursive: true });
  writeFileSync(
    join(source, 'CMakeLists.txt'),
    `cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES CXX)
add_subdirectory("${root}" wgemm)
file(WRITE main.cc "int main() {}")
add_executable(parent main.cc)
target_link_libraries(parent PRIVATE wgemm::wgemm)
if(CMAKE_BUILD_TYPE OR CMAKE_CXX_STANDARD OR TARGET wgemm_tests OR TARGET gtest)
  message(FATAL_ERROR "wgemm imposes a build type, a standard or tests on the parent project.")
endif()
`,
  );
  const build = join(source, 'build');
  const otherwise =
    'wgemm cannot be added to another project by add_subdirectory(): see above why.';
  await run('cmake', ['-S', source, '-B', build, '-G', 'Ninja'], { quiet: true, otherwise });
  if (readFileSync(join(build, 'wgemm', 'cmake_install.cmake'), 'utf8').includes('libwgemm.a')) {
    fail('wgemm installs itself when its parent project is installed: see WGEMM_INSTALL.');
  }
}

/**
 * Without network, a build without XNNPACK needs only SIMDe from the system. With XNNPACK, an error
 * names the folder to set.
 */
async function testOffline() {
  const build = join(root, 'build', 'offline-native');
  const prefix = join(build, 'installed');
  rmSync(build, { recursive: true, force: true });
  const env = { WGEMM_CACHE: join(build, 'no-cache'), GIT_ALLOW_PROTOCOL: 'none' };
  const configure = [
    '-S',
    root,
    '-B',
    build,
    '-G',
    'Ninja',
    '-DFETCHCONTENT_FULLY_DISCONNECTED=ON',
  ];
  const { stderr } = spawnSync('cmake', configure, {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  if (!stderr.replace(/\s+/g, ' ').includes('XNNPACK_SOURCE_DIR is not set, and'))
    fail(`A build without network does not name what it lacks:\n${stderr}`);
  const otherwise = 'wgemm without XNNPACK cannot be built without network: see above why.';
  const options = { env, quiet: true, otherwise };
  await run('cmake', [...configure, '-DWGEMM_XNNPACK=OFF'], options);
  await run('cmake', ['--build', build], options);
  await run('cmake', ['--install', build, '--prefix', prefix], options);
  const example = join(root, 'examples', 'native');
  const said = await runAgainstInstall(example, join(root, 'build', 'example-offline'), prefix);
  if (said !== exampleSays) fail(`Without XNNPACK, examples/native prints\n${said}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(testNativePackage);
