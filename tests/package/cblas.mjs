// Builds programs in C and C++ with wgemm by Emscripten, and runs them in Node and in Chromium. The
// commands and most programs are the blocks of the guide.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { findEmscripten } from '../../scripts/emscripten.mjs';
import { cache, root } from '../../scripts/run.mjs';
import { openIn } from '../browser/engines.mjs';
import { isolation, startServer } from '../browser/server.mjs';
import { runChild } from './child.mjs';
import { blockOf, readBlocks } from './pages.mjs';
import { refuse, twoAtATime } from './results.mjs';

const page = 'docs/guide/own-module.md';

/** The home folder of the guide's reader. */
const home = join(root, 'build', 'cblas-home');
const projects = join(root, 'build', 'cblas');

/** The output of the guide's first program. */
const product = '12 12.5 15 15.5\n';

/** Folders that may hold Eigen's headers. */
const eigen = [process.env.EIGEN3_INCLUDE_DIR, '/usr/include/eigen3', '/usr/local/include/eigen3'];

/** The blocks of a language under a heading, in order. */
const under = (heading, language) => {
  const found = readBlocks(page).filter(
    (block) => block.language === language && block.headings.at(-1) === heading,
  );
  if (found.length === 0) refuse(`${page} has no ${language} under '${heading}'`);
  return found.map(({ code }) => code);
};
const fileOf = (file) => blockOf(page, { file }).code;

/**
 * The environment of a reader who has Emscripten on PATH. ccache is told what it is told in
 * cmake/emscripten-toolchain.cmake, so that these builds share objects with the presets.
 */
function environment() {
  const folder = findEmscripten();
  const env = {
    HOME: home,
    WGEMM_CACHE: cache,
    CMAKE_GENERATOR: 'Ninja',
    PATH: [folder, process.env.PATH].join(delimiter),
  };
  const launchers = ['CMAKE_C_COMPILER_LAUNCHER', 'CMAKE_CXX_COMPILER_LAUNCHER'];
  if (launchers.some((name) => basename(process.env[name] ?? '') !== 'ccache'))
    return { ...env, ...Object.fromEntries(launchers.map((name) => [name, undefined])) };
  const { stderr } = spawnSync(join(folder, 'emcc'), ['-v'], { encoding: 'utf8' });
  const check = [
    readFileSync(join(folder, 'emscripten-version.txt'), 'utf8').replaceAll('"', '').trim(),
    /clang version ([0-9.]+)/.exec(stderr)?.[1],
    process.env.EMCC_CFLAGS ?? '',
  ];
  return {
    ...env,
    CCACHE_COMPILERTYPE: 'clang',
    CCACHE_COMPILERCHECK: `string:${check.join(' ')}`,
    CCACHE_DIR: process.env.CCACHE_DIR ?? join(process.env.HOME, '.cache', 'ccache'),
  };
}

let env;

/** Runs commands in a folder. @returns what they print */
const shell = (cwd, ...commands) =>
  runChild('sh', ['-e', '-c', commands.join('\n')], { cwd, env, timeout: 1_200_000 });

/** Runs commands of which the last one starts a program, which must print `expected`. */
async function check(expected, cwd, ...commands) {
  const said = await shell(cwd, ...commands);
  if (!said.endsWith(expected)) refuse(`the program prints\n${said}and not\n${expected}`);
}

/** Makes a folder with these files. In this repository's own folder, Node would read .js as ESM. */
function project(name, files) {
  const folder = join(projects, name);
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries({ 'package.json': '{}', ...files }))
    writeFileSync(join(folder, file), text);
  return folder;
}

/** Builds wgemm as the guide says. */
async function install(commands) {
  const options = process.env.CI ? '-DWGEMM_WERROR=ON ' : '';
  await shell(root, commands.replace('-S . ', `-S . ${options}`));
}

/** The lists and programs of projects that CMake builds. */
async function testCMake(test) {
  const lists = fileOf('CMakeLists.txt');
  const [build] = under('With CMake', 'sh');
  const [printed] = under('With CMake', 'text');
  if (printed !== product) refuse(`${page} says that its program prints\n${printed}`);
  const folder = project('find', { 'CMakeLists.txt': lists, 'main.c': fileOf('main.c') });
  await test('find_package', 'C', () => check(product, folder, build));

  // Threads, by the options of the target alone.
  const threads = project('find-threads', {
    'CMakeLists.txt': `${lists}target_link_options(demo PRIVATE -sPTHREAD_POOL_SIZE=1)\n`,
    'main.c': fileOf('threads.c'),
  });
  await test('find_package', 'C with threads', () =>
    check('2 threads\n', threads, build.replace('wgemm-simd128', 'wgemm-threads')),
  );

  const { code, line, page: from } = blockOf('docs/guide/cpp.md', { language: 'cpp' });
  const said = readBlocks(from).find((block) => block.language === 'text' && block.line > line);
  const cpp = project('find-cpp', {
    'CMakeLists.txt': blockOf(from, { language: 'cmake' }).code,
    'main.cc': code,
  });
  await test('find_package', 'C++ with wgemm.h', () =>
    check(said.code, cpp, build.replace('wgemm-simd128', 'wgemm-relaxed')),
  );

  const fetch = project('fetch', {
    'CMakeLists.txt': lists
      .replace('LANGUAGES C', 'LANGUAGES C CXX')
      .replace(/^find_package.*\n/m, fileOf('fetch.cmake')),
    'main.c': fileOf('main.c'),
  });
  // A folder as deep as a preset's, since ccache compares the paths of headers.
  const built = join(root, 'build', 'cblas-fetch');
  const fromClone = `-DFETCHCONTENT_SOURCE_DIR_WGEMM=${root} -DCMAKE_BUILD_TYPE=Release`;
  await test('FetchContent', 'C', () =>
    check(
      product,
      fetch,
      `emcmake cmake -S . -B ${built} ${fromClone}`,
      `cmake --build ${built} --target demo`,
      `cp ${built}/demo.* .`,
      'node demo.js',
    ),
  );
}

async function testEmcc(test) {
  const folder = project('emcc', {
    'main.c': fileOf('main.c'),
    'threads.c': fileOf('threads.c'),
    'strict.c': '#include <cblas.h>\nint main(void) { return 0; }\n',
  });
  const [build] = under('Without CMake', 'sh');
  await test('emcc', 'C', () => check(product, folder, build));
  const strict = '-std=c89 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror -fsyntax-only';
  await test('emcc', 'cblas.h as C89', () =>
    check('', folder, `emcc ${strict} strict.c -I ~/wgemm-simd128/include/wgemm`),
  );
  const [, run] = under('Threads', 'sh');
  await test('emcc', 'C with threads', () => check(under('Threads', 'text')[0], folder, run));
  const [, line] = /^(emcc.*)$/m.exec(build);
  await test('emcc', 'threads that the program does not want', () =>
    check(product, folder, 'P=~/wgemm-threads', line, 'node demo.js'),
  );
}

/** Opens a page that imports a module, and returns the lines that it prints. */
async function printedInChromium(folder, script, headers = {}) {
  const files = {
    '/': `<script type="module">
const lines = [];
console.log = (text) => lines.push(text);
console.error = (text) => lines.push(text);
const tell = () =>
  fetch('/result', { method: 'POST', body: JSON.stringify(lines.join('\\n') + '\\n') });
import('./page.mjs').then(tell, (error) => { lines.push(String(error)); tell(); });
</script>`,
    '/page.mjs': script,
  };
  const server = await startServer({ folders: { '/': folder }, files, headers });
  try {
    return await openIn('chromium', server.url('/'));
  } finally {
    await server.close();
  }
}

/** Two modules, of which an engine loads one: the other is not there. */
async function testChoice(test) {
  const load = fileOf('load.mjs');
  const folder = project('choice', { 'main.c': fileOf('main.c') });
  const [, build] = under('Choose a build at load', 'sh');
  const ready = test('two builds', 'build', () => shell(folder, build));
  const withOnly = (name) => {
    const only = project(`choice-${name}`, { 'load.mjs': load });
    for (const type of ['mjs', 'wasm'])
      copyFileSync(join(folder, `demo-${name}.${type}`), join(only, `demo-${name}.${type}`));
    return only;
  };
  if (!(await ready)) return;
  await test('two builds', 'Node takes relaxed', () =>
    check(product, withOnly('relaxed'), 'node load.mjs'),
  );
  await test('two builds', 'an engine without relaxed SIMD takes simd128', () => {
    const lacks = 'data:text/javascript,WebAssembly.validate=()=>false';
    return check(product, withOnly('simd128'), `node --import '${lacks}' load.mjs`);
  });
  await test('two builds', 'Chromium takes relaxed', async () => {
    const said = await printedInChromium(withOnly('relaxed'), load);
    if (said !== product) refuse(`the page prints ${said}`);
  });
}

/** Products on two threads are right, in Node and in an isolated page. */
async function testThreads(test) {
  const folder = project('threads', {});
  const start = "const { default: start } = await import('./threads.mjs');\nawait start();\n";
  const ready = test('two threads', 'build', () =>
    shell(
      folder,
      `cp ${join(root, 'tests', 'package', 'cblas', 'threads.c')} .`,
      'P=~/wgemm-threads',
      'emcc -O3 -pthread -sPTHREAD_POOL_SIZE=1 threads.c -I $P/include/wgemm -L $P/lib ' +
        '-lwgemm_cblas -lwgemm -o threads.mjs',
    ),
  );
  if (!(await ready)) return;
  const judge = (said) =>
    /^2 threads, (.*)\n/m.exec(said)?.[1] ?? refuse(`the program prints ${said}`);
  writeFileSync(join(folder, 'start.mjs'), start);
  await test('two threads', 'Node', async () => judge(await shell(folder, 'node start.mjs')));
  await test('two threads', 'Chromium', async () =>
    judge(await printedInChromium(folder, start, isolation)),
  );
}

/** A program that others wrote: Eigen computes its products by the names of Fortran. */
async function testEigen(test) {
  const headers = eigen.find((folder) => folder && existsSync(join(folder, 'Eigen', 'Core')));
  await test('Eigen', 'a product', async () => {
    if (!headers) return 'left out: no headers of Eigen here';
    const folder = project('eigen', { 'eigen.cc': fileOf('eigen.cc') });
    const [build, run] = under('Eigen', 'sh');
    await install(build);
    await check(under('Eigen', 'text')[0], folder, run.replace('/usr/include/eigen3', headers));
    return undefined;
  });
}

/** A side module needs libraries of Emscripten that not every installation has. */
async function testSideModule(test) {
  const system = join('cache', 'sysroot', 'lib', 'wasm32-emscripten', 'pic', 'libc.a');
  await test('side module', 'dlopen in Node', async () => {
    if (!existsSync(join(findEmscripten(), system)))
      return 'left out: this Emscripten has no libraries for side modules';
    const [build, run] = under('Side modules', 'sh');
    await install(build);
    const files = Object.fromEntries(['side.c', 'host.c'].map((file) => [file, fileOf(file)]));
    await check(under('Side modules', 'text')[0], project('side', files), run);
    return undefined;
  });
}

export async function testCblas(results) {
  for (const folder of [home, projects]) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  env = environment();
  const test = (where, what, body) => results.test('cblas', where, what, body);
  for (const heading of ['Build and install', 'Threads', 'Choose a build at load'])
    await test('install', `'${heading}'`, () => install(under(heading, 'sh')[0]));
  const parts = [testCMake, testEmcc, testChoice, testEigen, testSideModule];
  await twoAtATime(parts, (part) => part(test));
  await testThreads(test); // alone, since it measures
}
