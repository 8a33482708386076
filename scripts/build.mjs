// Makes dist/: the .wasm of each build, the bundled API and its declarations.
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

const coreNames = ['wgemm-simd128', 'wgemm-relaxed', 'wgemm-simd128-mt', 'wgemm-relaxed-mt'];
const wasmNames = coreNames.flatMap((name) => [name, `${name}-models`]);
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

/**
 * Bundles with the settings that all bundles share.
 * @param builds the module that stands for js/instance/builds.ts
 * @param glue the build whose glue stands for wgemm-glue.mjs
 */
const bundle = (options, builds = 'builds', glue = 'simd128') =>
  esbuild.build({
    absWorkingDir: root,
    outdir: 'dist', // the paths in source maps start here
    write: false,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'neutral',
    // package.json says that imports of js/ have no effects, but imports of the thread have.
    ignoreAnnotations: options.format === 'iife',
    sourcemap: 'inline',
    logLevel: 'warning',
    metafile: true,
    loader: { '.wasm': 'binary' },
    external: ['./wgemm-mt.js', 'node:*'],
    plugins: [
      {
        name: 'builds',
        setup(build) {
          build.onResolve({ filter: /^\.\/builds\.js$/ }, ({ importer }) => ({
            path: inJs(`instance/${importer.includes('builds-') ? 'builds' : builds}`),
          }));
          build.onLoad({ filter: /[\\/]pbf[\\/]index\.js$/ }, ({ path }) => ({
            contents: usedOfPbf(readFileSync(path, 'utf8')),
          }));
          build.onResolve({ filter: /\/wgemm-.*\.(mjs|wasm)$/ }, ({ path }) => ({
            path: fileOf(basename(path).replace('glue', glue)),
          }));
        },
      },
    ],
    ...options,
  });

const inJs = (name) => join(root, 'js', `${name}.ts`);

/** Bundles an entry as one file. */
async function bundleAlone(folder, entry, { as = entry, builds, ...options } = {}) {
  const entryPoints = [{ in: inJs(entry), out: as }];
  const { outputFiles } = await bundle({ entryPoints, ...options }, builds);
  await emit(folder, `${as}.js`, outputFiles[0].text, options.format !== 'iife');
}

/**
 * Bundles entries that share code. esbuild cuts this code into chunks by the entries that need it.
 * Chunks that `index` needs become a part of index.js. A page then loads one file, and CDNs that
 * bundle each entry do not repeat the classes. Other chunks are named after their entries.
 */
async function bundleTogether(folder, entries, glue) {
  const entryPoints = entries.map((entry) => ({ in: inJs(entry), out: entry }));
  const together = await bundle({ entryPoints, splitting: true }, undefined, glue);
  const { outputFiles, metafile } = together;
  const scripts = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
  const importsOf = (name) =>
    metafile.outputs[`dist/${name}`].imports
      .filter(({ external }) => !external)
      .map(({ path }) => basename(path));
  const needs = (name) => new Set(importsOf(name).flatMap((each) => [each, ...needs(each)]));
  const inIndex = needs('index.js');
  const names = namesInIndex(scripts.get('index.js'));
  const fileNames = new Map();
  for (const name of scripts.keys()) {
    const users = entries.filter((entry) => needs(`${entry}.js`).has(name));
    if (inIndex.has(name)) fileNames.set(name, 'index.js');
    else if (users.length > 0) fileNames.set(name, `${users.join('-')}.js`);
  }
  const others = Array.from(scripts).filter(([name]) => name !== 'index.js' && !inIndex.has(name));
  for (const [name, script] of others) {
    const linked = script
      .replace(/^import "\.\/chunk-.*";$/gm, '')
      .replace(chunkImport, (_, list, chunk) => {
        const from = inIndex.has(chunk) ? (each) => names.of(chunk, each) : (each) => each;
        const renamed = list.replace(/(\w+)( as \w+)?/g, (all, each, local = ` as ${each}`) =>
          from(each) === each ? all : from(each) + local,
        );
        return `import {${renamed}} from "./${fileNames.get(chunk)}";`;
      });
    await emit(folder, fileNames.get(name) ?? name, linked, true);
  }
  const whole = await bundle({
    stdin: { contents: `export * from './index.js';\n${names.exports()}`, resolveDir: root },
    plugins: [
      {
        name: 'chunks',
        setup(build) {
          build.onResolve({ filter: /^\.\/(index|chunk-\w+)\.js$/ }, ({ path }) => ({
            path: join(root, 'dist', path),
          }));
          build.onLoad({ filter: /[\\/]dist[\\/][\w-]+\.js$/ }, ({ path }) => ({
            contents: scripts.get(basename(path)),
          }));
        },
      },
    ],
  });
  await emit(folder, 'index.js', whole.outputFiles[0].text, true);
}

const chunkImport = /import \{([^}]*)\} from "\.\/(chunk-\w+\.js)";/g;

/**
 * The names under which index.js exports what other files import from its chunks: the public name,
 * or `$` and a number. Types do not declare the latter. It is a second constant, since engines do
 * not inline functions that a module exports.
 */
function namesInIndex(script) {
  const [, list] = /export \{([^}]*)\};/.exec(script);
  const publicNames = new Set(list.split(',').map((name) => name.trim()));
  const names = new Map();
  for (const [, list, chunk] of script.matchAll(chunkImport))
    for (const name of list.split(',').map((each) => each.trim()))
      if (publicNames.has(name)) names.set(`${chunk} ${name}`, name);
  const hidden = [];
  return {
    of(chunk, name) {
      const key = `${chunk} ${name}`;
      if (!names.has(key)) {
        names.set(key, `$${names.size}`);
        const alias = names.get(key);
        hidden.push(`import { ${name} as _${alias} } from './${chunk}';\n`);
        hidden.push(`export const ${alias} = _${alias};\n`);
      }
      return names.get(key);
    },
    exports: () => hidden.join(''),
  };
}

/** Minifies a script, and writes it and its source map. */
async function emit(folder, name, bundled, isModule) {
  const [script, sourceMap] = bundled.split('//# sourceMappingURL=data:application/json;base64,');
  const content = Buffer.from(sourceMap, 'base64').toString();
  const { code, map } = await minify(name, script, isModule, content);
  const lines = inLines(code, map);
  writeFileSync(join(folder, name), `${lines.code}\n//# sourceMappingURL=${name}.map\n`);
  writeFileSync(join(folder, `${name}.map`), JSON.stringify(lines.map));
}

/** esbuild writes classes as `var X = class`, which get their names from the variables. */
const classNames = (script) => Array.from(script.matchAll(/(\w+) = class\b/g), ([, name]) => name);

/** Minifies a script, whose own source map is `content`. */
const minify = (name, script, module, content) =>
  terser.minify(
    { [name]: script },
    {
      ecma: 2022,
      module,
      // With reduce_funcs it moves functions into those that call them, which make them each time.
      compress: { passes: 2, reduce_funcs: false },
      keep_classnames: true, // consoles show them
      mangle: { reserved: classNames(script) },
      format: { preserve_annotations: true }, // bundlers of users read them
      sourceMap: { filename: name, content, asObject: true, includeSources: true },
    },
  );

/**
 * pbf without the methods of its reader that js/onnx/read/wire.ts neither calls nor inherits:
 * minifiers keep all methods of a class.
 */
function usedOfPbf(source) {
  const wire = readFileSync(join(root, 'js', 'onnx', 'read', 'wire.ts'), 'utf8');
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

/** Where CMake puts a `.wasm` or its glue. */
const fileOf = (name) =>
  join(root, 'build', name.replace(/wgemm(.*?)(-models)?\.\w+$/, 'wasm$1'), name);

/**
 * Makes a folder of these `.wasm` and of what `body` adds to them, unless it exists and nothing has
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
    ...names.flatMap((name) => [fileOf(`${name}.wasm`), fileOf(`${name}.mjs`)]),
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
  for (const name of names) copyFileSync(fileOf(`${name}.wasm`), join(made, `${name}.wasm`));
  await body(made);
  rmSync(folder, { recursive: true, force: true });
  renameSync(made, folder);
  writeFileSync(stamp, state());
}

/**
 * Fails unless the modules have the same glue, which the scripts contain once. The glue has the
 * imports of a module, and a function per shape of the functions that bindings/ binds: how many
 * parameters, and whether there is a result.
 */
function checkGlue(...names) {
  const texts = names.map((name) =>
    readFileSync(fileOf(`${name}.mjs`), 'utf8').replaceAll(name, ''),
  );
  if (new Set(texts).size !== 1)
    fail(`The glue of ${names.join(', ')} differs, but js/instance/ uses one for all.`);
}

/** dist/ is whole or not there. */
export async function makeDist() {
  await makeFolder(join(root, 'dist'), wasmNames, async (made) => {
    checkGlue(...wasmNames.filter((name) => !name.includes('-mt')));
    checkGlue(...wasmNames.filter((name) => name.includes('-mt')));
    const declarations = run(
      'tsc',
      ['-p', 'js/tsconfig.json', '--outDir', made, '--declarationDir', made],
      {
        otherwise: 'The TypeScript in js/ has the errors above: correct them and run this again.',
      },
    );
    const entries = ['index', 'worker', 'linear', 'search', 'onnx', 'tfjs', 'weights'];
    const bundles = [
      bundleTogether(made, entries),
      bundleAlone(made, 'cli', { external: ['./index.js', './onnx.js', 'node:*'] }),
      bundleAlone(made, 'inline', { builds: 'builds-inline' }),
      bundleAlone(made, 'worker/in-worker', { as: 'wgemm-worker', builds: 'builds-worker' }),
      bundleAlone(made, 'onnx/run/in-worker', {
        as: 'wgemm-models-worker',
        builds: 'builds-worker',
      }),
      bundleAlone(made, 'instance/threads/thread', { as: 'wgemm-thread', format: 'iife' }),
      bundleAlone(made, 'instance/threads/glue', { as: 'wgemm-mt' }),
    ];
    await Promise.all([declarations, ...bundles]);
    const declared = declarationsOf(made, ['inline', ...entries]);
    // Declarations of internal modules stay out.
    for (const path of filesIn(made))
      if (path.endsWith('.d.ts') && !declared.has(relative(made, path))) rmSync(path);
  });
}

/**
 * Makes build/example-library/: the entries `wgemm`, `wgemm/linear` and `wgemm/search`, with the
 * one build that the examples use. With `models`, it makes build/example-models-library/ instead,
 * which also has `wgemm/onnx` and the module with the operators of models.
 */
export async function makeExampleLibrary({ models = false } = {}) {
  const name = 'wgemm-relaxed';
  await buildPreset(name.replace('wgemm', 'wasm'), models ? 'wgemm_modules' : 'wgemm_wasm');
  const folder = join(root, 'build', models ? 'example-models-library' : 'example-library');
  const entries = ['index', 'linear', 'search', ...(models ? ['onnx'] : [])];
  await makeFolder(folder, [name, ...(models ? [`${name}-models`] : [])], (made) =>
    bundleTogether(made, entries, 'relaxed'),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await setUp('wasm');
    console.log('build: WebAssembly');
    for (const name of coreNames) await buildPreset(name.replace('wgemm', 'wasm'), 'wgemm_modules');
    await makeDist();
  });
}
