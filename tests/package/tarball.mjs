// Checks the tarball: its files and their sizes, and what publint, attw and old compilers say about
// it. Runs only in this runtime.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, posix } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { root } from '../../scripts/run.mjs';
import { runChild } from './child.mjs';
import { makeProject, pack } from './packed.mjs';
import { refuse } from './results.mjs';
import { cases, handles, indexes, layers, models, tfjs, weights } from './types.mjs';

/**
 * Every file except declarations and source maps, and its most bytes: raw, and with brotli. Every
 * script has a source map. The tarball must have no other file.
 */
const budgets = {
  LICENSE: [11_400, 3_200],
  NOTICE: [9_000, 2_400],
  'README.md': [9_000, 3_200],
  'package.json': [5_700, 1_450],
  'dist/cli.js': [8_300, 3_400],
  'dist/index.js': [105_500, 33_550],
  'dist/inline.js': [466_450, 156_000],
  'dist/linear.js': [10_300, 4_450],
  'dist/search.js': [20_000, 7_350],
  'dist/onnx.js': [128_000, 41_750],
  'dist/onnx-weights.js': [6_150, 2_600],
  'dist/tfjs.js': [9_000, 3_650],
  'dist/wgemm-relaxed-mt.wasm': [324_450, 101_450],
  'dist/wgemm-relaxed.wasm': [309_000, 95_450],
  'dist/wgemm-simd128-mt.wasm': [280_450, 93_800],
  'dist/wgemm-simd128.wasm': [265_350, 87_550],
  'dist/wgemm-relaxed-models.wasm': [382_000, 116_300],
  'dist/wgemm-relaxed-mt-models.wasm': [398_550, 122_900],
  'dist/wgemm-simd128-models.wasm': [338_400, 108_450],
  'dist/wgemm-simd128-mt-models.wasm': [354_600, 114_450],
  'dist/wgemm-mt.js': [21_700, 7_650],
  'dist/wgemm-thread.js': [22_200, 7_800],
  'dist/wgemm-models-worker.js': [264_350, 79_950],
  'dist/wgemm-worker.js': [135_000, 40_250],
  'dist/worker-linear.js': [4_450, 1_900],
  'dist/worker-search.js': [5_300, 2_200],
  'dist/weights.js': [12_600, 5_000],
  'dist/worker.js': [21_950, 7_350],
};
/** All declarations together, and all source maps, which pages do not load. */
const declarationsBudget = [229_450, 38_550];
const mapsBudget = [4_343_000, 557_500];
/** The most bytes that a page loads without threads, with brotli. */
const pageBudget = 128_900;

/**
 * By file name: the bytes that a page loads. `brotli`: from a server that compresses files ahead.
 */
function sizesOf(bytes) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };
  return [bytes.length, brotliCompressSync(bytes, { params }).length];
}

function checkSizes(names, read) {
  const wrong = [];
  const brotliOf = {};
  let total = 0;
  const check = (name, [raw, brotli], [rawBudget, brotliBudget]) => {
    total += raw;
    console.log(
      `    ${name.padEnd(28)} ${String(raw).padStart(7)} of ${rawBudget}, brotli ` +
        `${String(brotli).padStart(6)} of ${brotliBudget}`,
    );
    if (raw > rawBudget) wrong.push(`${name} has ${raw} bytes; it may have ${rawBudget}`);
    if (brotli > brotliBudget)
      wrong.push(`${name} has ${brotli} bytes with brotli; it may have ${brotliBudget}`);
  };
  for (const name of names.filter((name) => budgets[name])) {
    const sizes = sizesOf(read(name));
    check(name, sizes, budgets[name]);
    brotliOf[name] = sizes[1];
  }
  for (const [title, isPart, budget] of [
    ['dist/*.d.ts', isDeclaration, declarationsBudget],
    ['dist/*.map', isMap, mapsBudget],
  ])
    check(title, sizesOf(Buffer.concat(names.filter(isPart).map(read))), budget);
  const page = brotliOf['dist/index.js'] + brotliOf['dist/wgemm-relaxed.wasm'];
  if (page > pageBudget)
    wrong.push(`a page loads ${page} bytes with brotli; it may load ${pageBudget}`);
  if (wrong.length > 0) refuse(wrong.join('\n'));
  const kilobytes = (bytes, digits) => `${(bytes / 1000).toFixed(digits)} kB`;
  return `a page loads ${kilobytes(page, 1)} with brotli; all have ${kilobytes(total, 0)}`;
}

const isDeclaration = (name) => name.startsWith('dist/') && name.endsWith('.d.ts');
const isMap = (name) => name.startsWith('dist/') && name.endsWith('.map');

/** The declarations that the entries need, and no others: internal modules have none. */
function reachedDeclarations(entries, read) {
  const reached = new Set();
  const visit = (name) => {
    if (reached.has(name)) return;
    reached.add(name);
    for (const [, , path] of String(read(name)).matchAll(/\b(from|import)\s*\(?\s*'(\.[^']*)'/g)) {
      visit(
        posix.join(posix.dirname(name), path.replace(/\.js$/, '.d.ts').replace(/\.mjs$/, '.d.mts')),
      );
    }
  };
  for (const entry of entries) visit(entry);
  return reached;
}

function checkNames(names, manifest, read) {
  const types = Object.values(manifest.exports).flatMap((entry) =>
    entry.types ? [posix.normalize(entry.types)] : [],
  );
  const listed = Object.keys(budgets);
  const maps = listed.filter((name) => /\.m?js$/.test(name)).map((name) => `${name}.map`);
  const wanted = new Set([...listed, ...maps, ...reachedDeclarations(types, read)]);
  const missing = [...wanted].filter((name) => !names.includes(name));
  const extra = names.filter((name) => !wanted.has(name));
  if (missing.length + extra.length > 0)
    refuse(
      `missing: ${missing.join(', ') || 'nothing'}\nshould not be there: ` +
        `${extra.join(', ') || 'nothing'}`,
    );
  return `${names.length} files`;
}

function checkManifest(manifest, names) {
  for (const key of ['main', 'unpkg', 'jsdelivr']) {
    if (!names.includes(posix.normalize(manifest[key])))
      refuse(`package.json has ${key} ${manifest[key]}, which the tarball lacks`);
  }
  for (const key of ['dependencies', 'optionalDependencies', 'bundleDependencies']) {
    if (manifest[key]) refuse(`package.json has ${key}`);
  }
  // npm installs peers, except optional ones.
  for (const peer of Object.keys(manifest.peerDependencies ?? {})) {
    if (!manifest.peerDependenciesMeta?.[peer]?.optional)
      refuse(`package.json has the peer ${peer}, which is not optional`);
  }
  for (const script of ['preinstall', 'install', 'postinstall', 'prepare']) {
    if (manifest.scripts?.[script])
      refuse(`package.json has the script ${script}, which users would run`);
  }
  for (const [entry, conditions] of Object.entries(manifest.exports)) {
    if (conditions.types && Object.keys(conditions)[0] !== 'types')
      refuse(`exports: '${entry}' does not begin with types`);
  }
}

async function checkWithPublint(file) {
  const { publint } = await import('publint');
  const { formatMessage } = await import('publint/utils');
  const tarball = new Uint8Array(readFileSync(file)).buffer;
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true, level: 'suggestion' });
  if (pkg?.name !== 'wgemm') refuse('publint has not read the tarball');
  if (messages.length > 0)
    refuse(messages.map((message) => `${message.type}: ${formatMessage(message, pkg)}`).join('\n'));
}

/**
 * The package is only ESM, and says so. `require` loads it in Node from 20.19 or 22.12, and fails
 * in older ones with an error that names `import`. So attw's finding about that is ignored.
 */
async function checkWithAttw(file) {
  const { checkPackage, createPackageFromTarballData } = await import('@arethetypeswrong/core');
  const { problems, types } = await checkPackage(
    createPackageFromTarballData(new Uint8Array(readFileSync(file))),
    {
      excludeEntrypoints: [/assets/],
    },
  );
  if (!types) refuse('attw finds no types');
  const found = problems.filter(
    ({ kind, resolutionKind }) => !(kind === 'CJSResolvesToESM' && resolutionKind === 'node16-cjs'),
  );
  if (found.length > 0) refuse(JSON.stringify(found, undefined, 1));
}

/** The oldest TypeScript, the project's, and the newest. */
const compilers = {
  '5.0': [import.meta.url, 'typescript-5.0'],
  'of the project': [join(root, 'package.json'), 'typescript'],
  '7.0': [import.meta.url, 'typescript-7'],
};
/** What `tsc --init` of TypeScript 7 sets, besides `strict` and its kin. */
const init = {
  declaration: true,
  declarationMap: true,
  sourceMap: true,
  jsx: 'react-jsx',
  verbatimModuleSyntax: true,
  isolatedModules: true,
  noUncheckedIndexedAccess: true,
  moduleDetection: 'force',
};
/**
 * Options that a project may have set, also libraries without the DOM, as in Node and in workers.
 */
const settings = [
  { moduleResolution: 'bundler', module: 'esnext', lib: ['es2022', 'dom'] },
  { moduleResolution: 'bundler', module: 'esnext', lib: ['es2022', 'webworker'] },
  { moduleResolution: 'bundler', module: 'esnext', lib: ['es2022'] },
  { moduleResolution: 'node16', module: 'node16', lib: ['es2022', 'dom'] },
  { moduleResolution: 'nodenext', module: 'nodenext', lib: ['es2022'] },
  { moduleResolution: 'node10', module: 'esnext', lib: ['es2022'] },
  { ...init, module: 'nodenext', lib: ['es2022', 'dom'] },
];
/** TypeScript 7 no longer has node10. `fast`: the oldest compiles only with node10 and node16. */
const settingsOf = (compiler, fast) =>
  settings.filter(({ moduleResolution }) =>
    compiler === '7.0'
      ? moduleResolution !== 'node10'
      : !fast || ['node10', 'node16'].includes(moduleResolution),
  );

/** A program that uses each entry in full. */
const program = (entries) =>
  entries
    .map(
      (entry, i) => `
        import * as entry${i} from '${entry}';
        export type Options${i} = Parameters<typeof entry${i}.createGemm>[0];
        export async function use${i}(
          data: Float32Array,
          q: Uint8Array,
        ): Promise<Float32Array | Uint8Array | Int8Array> {
          const wg = await entry${i}.createGemm({
            maxMemory: 2 ** 30,
            assets: (file) => 'https://example.com/' + file,
          });
          const tensor = { data, shape: [2, 2] };
          const held = await wg.alloc('float32', [2, 2]);
          const packed = await wg.pack(tensor, { op: 'matmul', trans: true });
          const y = await wg.gemm(tensor, tensor, 1, { alpha: 0.5, transB: true });
          const product = await wg.matmul(held, packed, null, { out: held });
          const sum: number = y.data[0]! + product.shape[0]!;
          const z = await wg.qgemm({
            a: { data: q, shape: [2, 2] },
            aScale: sum,
            b: { data: q, shape: [2, 2] },
            bScale: data,
          });
          // @ts-expect-error a shape is missing
          await wg.gemm({ data }, tensor);
          wg.dispose();
          return z.data;
        }`,
    )
    .join('');

/** The script that starts a compiler. */
export function compilerOf(compiler) {
  const [from, name] = compilers[compiler];
  const manifest = createRequire(from).resolve(`${name}/package.json`);
  return join(dirname(manifest), JSON.parse(readFileSync(manifest, 'utf8')).bin.tsc);
}

async function checkTypes(compiler, entries, project, fast) {
  const tsc = compilerOf(compiler);
  const withInstances = entries.filter((entry) => !/linear|search|onnx|tfjs|weights/.test(entry));
  const programs = { types: program(withInstances), handles, indexes, layers, models };
  Object.assign(programs, { tfjs, weights });
  for (const entry of withInstances) programs[posix.basename(entry)] = cases(entry);
  const files = Object.keys(programs).map((name) => `${name}.ts`);
  for (const [name, text] of Object.entries(programs))
    writeFileSync(join(project, `${name}.ts`), text);
  const compile = async (setting, i) => {
    const compilerOptions = {
      ...setting,
      target: 'es2022',
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      types: [],
      outDir: `emitted.${compiler}.${i}`,
    };
    const configuration = join(project, `tsconfig.${i}.json`);
    writeFileSync(configuration, JSON.stringify({ compilerOptions, files }));
    await runChild(process.execPath, [tsc, '-p', configuration]).catch((failure) =>
      refuse(`${JSON.stringify(setting)}: ${failure.told ?? failure}`),
    );
  };
  const tried = settingsOf(compiler, fast);
  await Promise.all(tried.map(compile));
  return `${tried.length} settings`;
}

/** Checks the names and the sizes of all files of a tarball. `read` returns the bytes of one. */
export function checkFiles(names, read) {
  checkNames(names, JSON.parse(read('package.json')), read);
  return checkSizes(names, read);
}

/**
 * @param fast leaves out the project's TypeScript, which is between the others, and most settings
 *   of the oldest
 */
export async function testTarball(results, { fast = false } = {}) {
  const test = (where, what, body) => results.test('tarball', where, what, body);
  const { file, names } = await pack();
  const project = await makeProject('types');
  const read = (name) => readFileSync(join(project, 'node_modules', 'wgemm', name));
  const manifest = JSON.parse(read('package.json'));
  const entries = Object.keys(manifest.exports)
    .filter((entry) => !/\*|\.json$/.test(entry))
    .map((entry) => posix.join('wgemm', entry));
  await test('npm pack', 'files', () => checkNames(names, manifest, read));
  await test('npm pack', 'package.json', () => checkManifest(manifest, names));
  await test('npm pack', 'sizes', () => checkSizes(names, read));
  await test('npx wgemm', '--help', async () => {
    const program = join(project, 'node_modules', '.bin', 'wgemm');
    const said = await runChild(program, ['--help'], { cwd: project });
    if (!said.includes('npx wgemm model.onnx [options]')) refuse(`it prints ${said}`);
  });
  await test('publint', 'no findings', () => checkWithPublint(file));
  await test('attw', 'no findings', () => checkWithAttw(file));
  for (const compiler of Object.keys(compilers)) {
    if (fast && compiler === 'of the project') continue;
    await test(`TypeScript ${compiler}`, entries.join(' '), () =>
      checkTypes(compiler, entries, project, fast),
    );
  }
}
