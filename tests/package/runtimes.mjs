// Tests the installed tarball in Node, Bun, Deno and workerd, with the same programs in each.
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join, posix } from 'node:path';
import { root } from '../../scripts/run.mjs';
import { runChild } from './child.mjs';
import { makeProject } from './packed.mjs';
import { blockOf, readBlocks } from './pages.mjs';
import { refuse, twoAtATime } from './results.mjs';

const here = import.meta.dirname;
const installed = join(here, 'runtimes', 'node_modules');
const edgePage = 'docs/guide/bundlers/edge.md';

/** Name -> program and the arguments before a script. Node 24 is the project's own. */
export const runtimes = {
  'Node 20': [join(installed, 'node-20', 'bin', 'node')],
  'Node 22': [join(installed, 'node-22', 'bin', 'node')],
  'Node 24': [process.execPath],
  'Node 26': [join(installed, 'node-26', 'bin', 'node')],
  Bun: [join(installed, 'bun', 'bin', 'bun.exe'), 'run'], // its name on every system
  Deno: [
    join(installed, '.bin', 'deno'),
    'run',
    '-A',
    '--no-remote',
    '--cached-only',
    '--node-modules-dir=manual',
  ],
};

/** Puts strict.mjs into a project, in one file with the problems of the API tests. */
async function bundleStrict(project) {
  const { build } = await import('esbuild');
  await build({
    entryPoints: [join(here, 'strict.mjs')],
    outfile: join(project, 'strict.mjs'),
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'neutral',
    logLevel: 'warning',
  });
}

/** API tests that take seconds: CI leaves the others to `npm run test:everywhere`. */
const fastTests = [
  'call/errors',
  'call/hostile',
  'convert/foreign',
  'instance/builds',
  'instance/threads',
  'ops/activation',
  'ops/serialize',
  'search/threads',
];

/** Bundles the API tests. They use dist/ and the packages of this clone. */
async function bundleApi() {
  const { build } = await import('esbuild');
  const { allTests } = await import('../browser/bundle.mjs');
  const outfile = join(root, 'build', 'runtimes', 'api.mjs');
  await build({
    entryPoints: [join(here, 'run-api.mjs')],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'node',
    packages: 'external',
    alias: { vitest: join(root, 'tests', 'browser', 'page', 'vitest.js') },
    plugins: [allTests],
    logLevel: 'warning',
  });
  return outfile;
}

/** A runtime may take this many times as long as Node for an operation. */
const slowest = 5;

/** Races at most: a busy machine slows some of them. */
const races = 5;

/**
 * Compares the best time of each operation with Node's best time. Races again while an operation is
 * too slow.
 */
async function race(run, runInNode) {
  const best = [{}, {}];
  for (let left = races - 1; ; --left) {
    for (const [i, start] of [runInNode, run].entries())
      for (const [name, time] of Object.entries(JSON.parse(await start())))
        best[i][name] = Math.min(time, best[i][name] ?? Infinity);
    const [inNode, there] = best;
    const ratios = Object.entries(inNode).map(([name, time]) => [name, there[name] / time]);
    const [name, ratio] = ratios.reduce((most, each) => (each[1] > most[1] ? each : most));
    const told = `${name} takes ${ratio.toFixed(1)} times as long as in Node`;
    if (ratio <= slowest) return `${ratios.length} cases; ${told}`;
    if (left === 0) refuse(told);
  }
}

/**
 * Makes a project with the tarball and the programs that run there: the smoke test, the fixed
 * problems, the vectors, the first lines of README.md.
 */
async function makeRuntimesProject() {
  const project = await makeProject('runtimes');
  const programs = ['smoke', 'run-smoke', 'run-strict', 'run-import', 'run-race', 'realms.test'];
  for (const name of programs.map((program) => `${program}.mjs`))
    copyFileSync(join(here, name), join(project, name));
  await bundleStrict(project);
  const conformance = join(root, 'tests', 'conformance');
  mkdirSync(join(project, 'conformance'));
  for (const name of readdirSync(conformance))
    copyFileSync(join(conformance, name), join(project, 'conformance', name));
  const blocks = readBlocks('README.md');
  const first = blocks.findIndex(
    ({ language, code }) => language === 'js' && code.includes('createGemm'),
  );
  writeFileSync(join(project, 'first.mjs'), blocks[first].code);
  writeFileSync(
    join(project, 'refused.mjs'),
    "import { createGemm } from 'wgemm';\n" +
      'await createGemm().catch(({ name, message }) => console.log(name, message));\n',
  );
  writeFileSync(
    join(project, 'threads.mjs'),
    "import { createGemm } from 'wgemm';\n" +
      'const wg = await createGemm({ threads: 2 });\n' +
      'console.log(`threads: ${wg.info.threads}`);\n' +
      'wg.dispose();\n',
  );
  return { project, printed: blocks[first + 1].code };
}

const vectorsOf = (text) => {
  const counts = ['plain', 'packed'].map((form) => {
    const [count, passed, failed] =
      new RegExp(`^${form}: (\\d+) passed, (\\d+) failed$`, 'm').exec(text) ??
      refuse(`the vectors gave no count of '${form}':\n${text.slice(-2000)}`);
    if (Number(passed) === 0 || failed !== '0') refuse(count);
    return `${passed} ${form}`;
  });
  return `${counts.join(' and ')} vectors`;
};

/** The permissions in the command of the guide. */
function permissionsOfDeno() {
  const { code } = readBlocks('docs/guide/bundlers/frameworks.md').find(({ headings }) =>
    headings.includes('Deno'),
  );
  return code.match(/--allow-\S+/g) ?? refuse(`'${code}' allows nothing`);
}

const expectLine = (text, line) =>
  text.includes(line) || refuse(`it ended without '${line}'; it said ${text}`);

/**
 * @param options fast: only in this project's Node; rest: in all other runtimes. Both leave the
 *   vectors of other projects out.
 */
export async function testRuntimes(results, { fast = false, rest = false } = {}) {
  const { project, printed } = await makeRuntimesProject();
  const { exports } = JSON.parse(
    readFileSync(join(project, 'node_modules', 'wgemm', 'package.json'), 'utf8'),
  );
  const entries = Object.keys(exports)
    .filter((entry) => !/\*|\.json$/.test(entry))
    .map((entry) => posix.join('wgemm', entry));
  const testIn = async ([name, [program, ...before]]) => {
    const run = (args, env) =>
      runChild(program, [...before, ...args], { cwd: project, timeout: 300_000, env });
    let version = '';
    const there = await results.test('runtimes', name, 'starts', async () => {
      version =
        /\d+\.\d+\.\d+/.exec(await runChild(program, ['--version']))?.[0] ??
        refuse('it does not tell its version');
      if (name.startsWith('Node') && name !== `Node ${version.split('.')[0]}`)
        refuse(`it is Node ${version}`);
      return version;
    });
    if (!there) return;
    const test = (what, body) => results.test('runtimes', name, what, body);
    await test('README', async () => {
      const said = await run(['first.mjs']);
      if (said.trim() !== printed.trim()) refuse(`the first lines of README.md print\n${said}`);
    });
    if (name.startsWith('Node')) {
      await test('import alone', async () => {
        expectLine(await run(['run-import.mjs', ...entries]), 'import passed');
        expectLine(await run(['run-import.mjs', '--gone', ...entries]), 'import passed');
      });
    }
    if (name === 'Bun' || name === 'Deno') {
      await test('race', () =>
        race(
          () => run(['run-race.mjs']),
          () => runChild(process.execPath, ['run-race.mjs'], { cwd: project }),
        ));
    }
    if (name === 'Bun') {
      // Bun runs JavaScriptCore. Others run the engine of Node.
      await test('API tests', async () => {
        const files = rest ? fastTests.map((file) => `${file}.test.ts`) : [];
        const said = await runChild(program, [...before, await bundleApi(), ...files], {
          cwd: root,
          timeout: 1_200_000,
          env: rest ? { WGEMM_SHORT_TESTS: '1' } : {},
        });
        return /\d+ API tests passed/.exec(said)?.[0] ?? refuse(`it said ${said}`);
      });
    }
    if (name === 'Deno') {
      const runWith = (allowed, args) => {
        const flags = before.flatMap((flag) =>
          flag === '-A' ? ['--no-prompt', ...allowed] : flag,
        );
        return runChild(program, [...flags, ...args], { cwd: project });
      };
      await test('without --allow-read', async () => {
        const said = await runWith([], ['refused.mjs']);
        if (!/^GemmError createGemm: .* \(.* --allow-read flag\)\n$/.test(said))
          refuse(`it said ${said}`);
      });
      await test('permissions of the guide', async () => {
        const allowed = permissionsOfDeno();
        for (const entry of ['wgemm', 'wgemm/worker', 'wgemm/onnx'])
          expectLine(await runWith(allowed, ['run-smoke.mjs', entry]), 'smoke passed');
        expectLine(await runWith(allowed, ['threads.mjs']), 'threads: 2');
        expectLine(await runWith([], ['run-smoke.mjs', 'wgemm/inline']), 'smoke passed');
        return allowed.join(' ');
      });
    }
    // Without fused instructions, and without AVX, V8 compiles to other instructions. The bits must
    // be the same.
    const processors =
      name === 'Node 24' && process.arch === 'x64'
        ? [[], ['--no-enable-fma3'], ['--no-enable-avx']]
        : [[]];
    for (const flags of processors) {
      await test(["'strict'", ...flags].join(' '), async () => {
        const said = await runChild(program, [...before, ...flags, 'run-strict.mjs'], {
          cwd: project,
          timeout: 300_000,
        });
        expectLine(said, 'strict passed: simd128');
        return said.trim().replace('strict passed: ', '');
      });
    }
    for (const entry of entries) {
      await test(entry, async () => {
        expectLine(await run(['run-smoke.mjs', entry]), 'smoke passed');
        if (entry === 'wgemm/worker') return 'smoke, ends while idle';
        if (/linear|search|onnx|tfjs|weights/.test(entry)) return 'smoke';
        // All vectors take a minute: they run once per runtime, without the largest cases, and not
        // in CI, where npm test runs them on dist/.
        const own = fast || rest || entry !== 'wgemm';
        const env = own ? { WGEMM_CONFORMANCE_DIR: '' } : {};
        return (
          'smoke, ' +
          `${vectorsOf(await run([join('conformance', 'run.mjs'), entry, '--most', '1e7'], env))}`
        );
      });
    }
  };
  const isOwn = ([, [program]]) => program === process.execPath;
  const tried = Object.entries(runtimes).filter((runtime) => (isOwn(runtime) ? !rest : !fast));
  await twoAtATime(tried, testIn);
  if (!rest) await testVitest(results, project);
  if (!fast) await testWorkerd(results);
}

/** Vitest has pages without a browser. Their realms are not the realm of Node's modules. */
async function testVitest(results, project) {
  const vitest = join(here, 'node_modules', 'vitest', 'vitest.mjs');
  const environments = {
    jsdom: [],
    'jsdom, vmThreads': ['--pool', 'vmThreads'],
    'happy-dom, vmThreads': ['--pool', 'vmThreads'],
  };
  for (const [name, flags] of Object.entries(environments)) {
    await results.test('runtimes', 'Vitest', name, async () => {
      const environment = ['--environment', name.split(',')[0]];
      // Without one of its own, the project would have the configuration of this clone.
      writeFileSync(join(project, 'vitest.config.mjs'), 'export default {};\n');
      const args = ['run', '--root', project, '--globals', ...environment, ...flags];
      const said = await runChild(process.execPath, [vitest, ...args], { env: { NO_COLOR: '1' } });
      return /Tests +(\d+ passed)/.exec(said)?.[1] ?? refuse(said);
    });
  }
}

/**
 * workerd compiles nothing from bytes, and its scripts have no address. The program comes from the
 * guide, bundled as its users' tools do: a script, and the compiled module next to it.
 */
async function testWorkerd(results) {
  const workerd = join(installed, 'workerd', 'bin', 'workerd');
  await results.test('runtimes', 'workerd', "assets, 'strict'", async () => {
    const { build } = await import('esbuild');
    const project = await makeProject('workerd');
    const { code } = blockOf(edgePage, { file: 'worker.js' });
    writeFileSync(join(project, 'worker.js'), code);
    copyFileSync(join(here, 'smoke.mjs'), join(project, 'smoke.mjs'));
    await bundleStrict(project);
    const [, asset] =
      /from '(wgemm\/assets\/[^']*\.wasm)'/.exec(code) ?? refuse(`${edgePage} imports no .wasm`);
    writeFileSync(
      join(project, 'test.js'),
      `import * as wgemm from 'wgemm';
       import module from '${asset}';
       import worker from './worker.js';
       import { smoke } from './smoke.mjs';
       import { strict } from './strict.mjs';

       export default {
         ...worker,
         async test() {
           const body = JSON.stringify({ a: [[1, 2]], b: [[3], [4]] });
           const request = new Request('http://test/', { method: 'POST', body });
           const answer = await (await worker.fetch(request)).text();
           if (answer !== '{"shape":[1,1],"data":[11]}') throw new Error(answer);
           await smoke(wgemm, { assets: () => module });
           await strict(wgemm, { builds: ['auto'], threads: [1] }, { assets: () => module });
           // This runtime is tested because it refuses to compile bytes.
           const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
           if (await WebAssembly.compile(bytes).then(() => true, () => false))
             throw new Error('it compiles from bytes');
         },
       };`,
    );
    const wasm = 'compiled.wasm';
    const toModule = {
      name: 'compiled modules',
      setup: (build) =>
        build.onResolve({ filter: /^wgemm\/assets\/.*\.wasm$/ }, async ({ path, ...args }) => {
          if (args.pluginData === 'again') return undefined;
          const { path: file } = await build.resolve(path, { ...args, pluginData: 'again' });
          cpSync(file, join(project, wasm));
          return { path: wasm, external: true };
        }),
    };
    await build({
      entryPoints: [join(project, 'test.js')],
      outfile: join(project, 'bundle.js'),
      bundle: true,
      format: 'esm',
      conditions: ['workerd', 'worker', 'browser'],
      absWorkingDir: project,
      plugins: [toModule],
      logLevel: 'warning',
    });
    writeFileSync(
      join(project, 'config.capnp'),
      `using Workerd = import "/workerd/workerd.capnp";
       const config :Workerd.Config = (services = [(name = "main", worker = (
         compatibilityDate = "2025-01-01",
         modules = [
           (name = "bundle.js", esModule = embed "bundle.js"),
           (name = "${wasm}", wasm = embed "${wasm}")
         ]
       ))]);`,
    );
    if (!existsSync(join(project, wasm))) refuse(`${asset} was not found by the bundler`);
    await runChild(workerd, ['test', 'config.capnp'], { cwd: project });
    return (await runChild(workerd, ['--version'])).trim();
  });
}
