// Makes dist/: each build's pair of .wasm and glue, the bundled API and its declarations.
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
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findEmscripten } from './emscripten.mjs';
import { fail, main, root, run } from './run.mjs';
import { setUp } from './setup.mjs';

const pairs = ['wgemm-simd128', 'wgemm-relaxed', 'wgemm-simd128-mt', 'wgemm-relaxed-mt'];
// Imported once they are set up.
let esbuild;
let terser;
let codec;

/** Whether this machine runs what is built with WGEMM_AVX2, as far as Linux says. */
export function hasAvx2() {
  const cpu = existsSync('/proc/cpuinfo') ? readFileSync('/proc/cpuinfo', 'utf8') : '';
  return ['avx2', 'fma'].every((name) => new RegExp(`^flags.* ${name}\\b`, 'm').test(cpu));
}

/** Configures and builds a preset of CMakePresets.json: all of it, or these targets. */
export async function buildPreset(preset, ...targets) {
  const definitions = [['WGEMM_WERROR', process.env.CI ? 'ON' : 'OFF']];
  if (preset.startsWith('wasm')) definitions.push(['WGEMM_EMSCRIPTEN_ROOT', findEmscripten()]);
  if (!isConfigured(preset, definitions)) {
    await run(
      'cmake',
      ['--preset', preset, ...definitions.map(([name, value]) => `-D${name}=${value}`)],
      {
        quiet: true,
        otherwise:
          `CMake could not configure ${preset}: correct what it says above; ` +
          'if you moved or updated a tool, remove build/ first.',
      },
    );
  }
  // On a terminal Ninja needs only one line.
  const quietly = process.stdout.isTTY ? [] : ['--', '--quiet'];
  await run(
    'cmake',
    [
      '--build',
      '--preset',
      preset,
      ...targets.flatMap((target) => ['--target', target]),
      ...quietly,
    ],
    {
      otherwise: `${preset} does not build: correct what the compiler says above.`,
    },
  );
}

/** Ninja sees by itself when a CMake file has changed, except CMakePresets.json. */
function isConfigured(preset, definitions) {
  const [cache, rules] = ['CMakeCache.txt', 'build.ninja'].map((name) =>
    join(root, 'build', preset, name),
  );
  if (!existsSync(cache) || !existsSync(rules)) return false;
  if (statSync(rules).mtimeMs <= statSync(join(root, 'CMakePresets.json')).mtimeMs) return false;
  const found = new Map(
    Array.from(readFileSync(cache, 'utf8').matchAll(/^(\w+):\w+=(.*)$/gm), ([, name, value]) => [
      name,
      value,
    ]),
  );
  return definitions.every(([name, value]) => found.get(name) === value);
}

async function bundle(folder, entry, { as = entry, external = [], pair = 'pair', format = 'esm' }) {
  const target = 'es2022';
  const { outputFiles } = await esbuild.build({
    entryPoints: [join(root, 'js', `${entry}.ts`)],
    outfile: join(root, 'dist', `${as}.js`), // the source map's paths start here
    write: false,
    bundle: true,
    format,
    target,
    platform: 'neutral',
    external,
    // package.json says that imports of js/ have no effects, but those of the thread have.
    ignoreAnnotations: format === 'iife',
    minifySyntax: true,
    keepNames: true, // of the classes, where a console shows them
    sourcemap: 'external',
    logLevel: 'warning',
    loader: { '.wasm': 'binary' },
    plugins: [
      {
        name: 'pair',
        setup(build) {
          build.onResolve({ filter: /^\.\/pair\.js$/ }, () => ({
            path: join(root, 'js', `${pair}.ts`),
          }));
          // Modules in a folder of js/ have another path to it, which is not that of `external`.
          build.onResolve({ filter: /^\.\.\/(\.\.\/)*index\.js$/ }, () => ({
            path: './index.js',
            external: true,
          }));
          build.onLoad({ filter: /[\\/]pbf[\\/]index\.js$/ }, ({ path }) => ({
            contents: usedOfPbf(readFileSync(path, 'utf8')),
          }));
          build.onResolve({ filter: /^\.\/wgemm-.*\.(mjs|wasm)$/ }, ({ path }) =>
            external.includes('./wgemm-*') ? undefined : { path: join(folder, path) },
          );
        },
      },
    ],
  });
  const name = `${as}.js`;
  const [sourceMap, script] = outputFiles.map(({ text }) => text);
  const { code, map } = await minify(name, nameless(script), format === 'esm', sourceMap);
  const lines = inLines(code, map);
  writeFileSync(join(folder, name), `${lines.code}\n//# sourceMappingURL=${name}.map\n`);
  writeFileSync(join(folder, `${name}.map`), JSON.stringify(lines.map));
}

/** Minifies a script, whose own source map is `content`. */
const minify = (name, script, module, content) =>
  terser.minify(
    { [name]: script },
    {
      ecma: 2022,
      module,
      // With reduce_funcs it moves functions into those that call them, which make them each time.
      compress: { passes: 2, reduce_funcs: false },
      format: { preserve_annotations: true }, // bundlers of users read them
      sourceMap: { filename: name, content, asObject: true, includeSources: true },
    },
  );

/**
 * pbf without the methods of its reader that js/onnx/wire.ts neither calls nor inherits: minifiers
 * keep all methods of a class.
 */
function usedOfPbf(source) {
  const wire = readFileSync(join(root, 'js', 'onnx', 'wire.ts'), 'utf8');
  const reader = source.slice(0, source.indexOf('export class PbfWriter'));
  const methods = Array.from(reader.matchAll(/^ {4}(\w+)\(.*\{\n(?: {5,}.*\n|\n)* {4}\}\n/gm));
  const names = new Set(['constructor']);
  const add = (text) => {
    for (const [method, name] of methods) {
      if (names.has(name) || !text.includes(`.${name}(`)) continue;
      if (wire.includes(`override ${name}(`)) continue;
      names.add(name);
      add(method);
    }
  };
  add(wire);
  if (names.size < 2) fail('pbf is written in another way than this script expects.');
  return methods.reduce(
    (rest, [method, name]) => (names.has(name) ? rest : rest.replace(method, '')),
    source,
  );
}

/**
 * Removes the calls that name functions, except classes: bundlers would keep every function in such
 * a call. What is left stays in its line and column, so that the source map stays true.
 */
function nameless(script) {
  if (!/^ *var __name = /m.test(script))
    fail('esbuild names functions in another way than this script expects.');
  const blank = (text) => text.replace(/[^\n]/g, ' ');
  let rest = script.replace(/^ *__name\((?!this)[\w$]+, "[\w$]+"\);$/gm, blank);
  const call = '/* @__PURE__ */ __name(';
  // From the last one, since a function may be in another.
  for (let start; (start = rest.lastIndexOf(call)) >= 0;) {
    const from = start + call.length;
    const end = Array.from(rest.slice(from).matchAll(/, "[\w$]+"\)/g)).find(({ index }) =>
      isBalanced(rest.slice(from, from + index)),
    );
    if (!end) fail('esbuild names a function in another way than this script expects.');
    const to = from + end.index;
    const after = to + end[0].length;
    rest = [
      ...[rest.slice(0, start), blank(call), rest.slice(from, to), blank(end[0])],
      rest.slice(after),
    ].join('');
  }
  return rest;
}

/**
 * Whether each parenthesis of a piece of code has its other one, as far as strings do not matter.
 */
function isBalanced(code) {
  let depth = 0;
  for (const [letter] of code.replace(/"(?:[^"\\\n]|\\.)*"/g, '').matchAll(/[()]/g))
    depth += letter === '(' ? 1 : -1;
  return depth === 0;
}

/**
 * Breaks the lines of a minified script before declarations, since Node shows the whole line of an
 * uncaught error. (esbuild's own limit of lines breaks texts that bundlers look for.)
 */
function inLines(code, map) {
  const offsetsOf = (pattern) => Array.from(code.matchAll(pattern), ({ index }) => index);
  const breaks = offsetsOf(/(?<=[;}])(?=(?:async )?function[ *]|class |let |var |export)/g);
  const oldLines = [0, ...offsetsOf(/(?<=\n)/g)];
  const lines = [...oldLines, ...breaks].sort((a, b) => a - b);
  const mappings = lines.map(() => []);
  let line = 0;
  codec.decode(map.mappings).forEach((segments, oldLine) => {
    for (const [column, ...source] of segments) {
      const offset = oldLines[oldLine] + column;
      while (offset >= lines[line + 1]) ++line;
      mappings[line].push([offset - lines[line], ...source]);
    }
  });
  const pieces = [0, ...breaks].map((start, i) => code.slice(start, breaks[i]));
  return { code: pieces.join('\n'), map: { ...map, mappings: codec.encode(mappings) } };
}

/** The declarations of entries and of everything that they import. */
function declarationsOf(folder, entries, found = new Set()) {
  for (const entry of entries) {
    const name = `${entry}.d.ts`;
    if (found.has(name)) continue;
    found.add(name);
    const imports = readFileSync(join(folder, name), 'utf8').matchAll(
      /(?:from |import\()['"](\.{1,2}\/[\w/-]+)\.js['"]/g,
    );
    declarationsOf(
      folder,
      Array.from(imports, ([, path]) => join(dirname(entry), path)),
      found,
    );
  }
  return found;
}

const hash = (parts) =>
  parts.reduce((sum, part) => sum.update(part), createHash('sha256')).digest('hex');
const hashFiles = (paths) => hash(paths.flatMap((path) => [path, readFileSync(path)]));
const filesIn = (folder) =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true })
        .map((name) => join(folder, name))
        .filter((path) => !statSync(path).isDirectory())
    : [];

/** Where CMake puts the pair of a name, without the extension. */
const pairIn = (name) => join(root, 'build', name.replace('wgemm', 'wasm'), name);

/**
 * Makes a folder of these pairs and of what `body` adds to them, unless it exists and nothing has
 * changed since. It is made elsewhere and then renamed, so that it never mixes two builds.
 */
async function makeFolder(folder, names, body) {
  const sources = [
    ...filesIn(join(root, 'js')),
    join(root, 'package-lock.json'),
    import.meta.filename,
  ];
  const inputs = hashFiles([
    ...sources,
    ...names.flatMap((name) => [`${pairIn(name)}.wasm`, `${pairIn(name)}.mjs`]),
  ]);
  const state = () => `${inputs} ${hashFiles(filesIn(folder))}`;
  const made = join(root, 'build', 'dist'); // bundles name it in comments
  const stamp = join(root, 'build', `${basename(folder)}.stamp`);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === state()) return;
  console.log(`build: ${relative(root, folder)}`);
  esbuild = await import('esbuild');
  terser = await import('terser');
  codec = await import('@jridgewell/sourcemap-codec');
  rmSync(made, { recursive: true, force: true });
  mkdirSync(made, { recursive: true });
  // Compared before they are minified: names are picked by how often letters occur, and letters
  // of the file's name count.
  const glues = new Set();
  for (const name of names) {
    copyFileSync(`${pairIn(name)}.wasm`, join(made, `${name}.wasm`));
    // Emscripten does not minify all of its glue. It stays a separate file, since its threads start
    // from it.
    const source = readFileSync(`${pairIn(name)}.mjs`, 'utf8');
    glues.add(source.replaceAll(name, ''));
    const glue = await minify(`${name}.mjs`, source, true);
    writeFileSync(
      join(made, `${name}.mjs`),
      `${glue.code}\n//# sourceMappingURL=${name}.mjs.map\n`,
    );
    writeFileSync(join(made, `${name}.mjs.map`), JSON.stringify(glue.map));
  }
  await body(made, glues);
  rmSync(folder, { recursive: true, force: true });
  renameSync(made, folder);
  writeFileSync(stamp, state());
}

const makeIndex = (made) => bundle(made, 'index', { external: ['./wgemm-*'] });
const makeLinear = (made) => bundle(made, 'linear', { external: ['./index.js'] });
const makeOnnx = (made) => bundle(made, 'onnx', { external: ['./index.js'] });
const makeTfjs = (made) => bundle(made, 'tfjs', { external: ['./index.js'] });

/** dist/ is whole or not there. */
export async function makeDist() {
  await makeFolder(join(root, 'dist'), pairs, async (made, glues) => {
    if (glues.size !== 2)
      fail(
        'The glue of the builds differs, but js/pair-worker.ts and js/thread.ts use one for all.',
      );
    const declarations = run(
      'tsc',
      ['-p', 'js/tsconfig.json', '--outDir', made, '--declarationDir', made],
      {
        otherwise: 'The TypeScript in js/ has the errors above: correct them and run this again.',
      },
    );
    // For each entry: which module replaces js/pair.ts, and which files stay separate.
    const bundles = [
      makeIndex(made),
      // index.js is external, so that errors are of one class, whichever entry throws.
      bundle(made, 'worker', { external: ['./index.js', './wgemm-*'] }),
      makeLinear(made),
      makeOnnx(made),
      bundle(made, 'cli', { external: ['./index.js', './onnx.js', 'node:*'] }),
      makeTfjs(made),
      bundle(made, 'worker-thread', { as: 'wgemm-worker', pair: 'pair-worker' }),
      bundle(made, 'inline', { pair: 'pair-inline' }),
      bundle(made, 'thread', { as: 'wgemm-thread', format: 'iife' }),
    ];
    await Promise.all([declarations, ...bundles]);
    const declared = declarationsOf(made, ['index', 'worker', 'inline', 'linear', 'onnx', 'tfjs']);
    // Declarations of internal modules stay out.
    for (const path of filesIn(made))
      if (path.endsWith('.d.ts') && !declared.has(relative(made, path))) rmSync(path);
  });
}

/**
 * Makes build/example-library/: the entries `wgemm` and `wgemm/linear`, with the one build that the
 * examples use.
 */
export async function makeExampleLibrary() {
  const name = 'wgemm-relaxed';
  await buildPreset(name.replace('wgemm', 'wasm'), 'wgemm_wasm');
  await makeFolder(join(root, 'build', 'example-library'), [name], (made) =>
    Promise.all([makeIndex(made), makeLinear(made)]),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await setUp('wasm');
    console.log('build: WebAssembly');
    for (const name of pairs) await buildPreset(name.replace('wgemm', 'wasm'), 'wgemm_wasm');
    await makeDist();
  });
}
