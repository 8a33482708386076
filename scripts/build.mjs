// Makes dist/: the pair of wasm and its glue, the bundled API, its declarations.
import { readFileSync, renameSync, rmSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findEmscripten } from './emscripten.mjs';
import { main, root, run } from './run.mjs';
import { setUp } from './setup.mjs';

const pairs = ['wgemm-simd128'];

/** Configures and builds one preset of CMakePresets.json; all of it, or the targets named. */
export async function buildPreset(preset, ...targets) {
  const definitions = [`-DWGEMM_WERROR=${process.env.CI ? 'ON' : 'OFF'}`];
  if (preset.startsWith('wasm')) definitions.push(`-DWGEMM_EMSCRIPTEN_ROOT=${findEmscripten()}`);
  await run('cmake', ['--preset', preset, ...definitions], {
    quiet: true,
    otherwise: `CMake could not configure ${preset}: correct what it says above; if you moved or updated a tool, remove build/ first.`,
  });
  const quietly = process.stdout.isTTY ? [] : ['--', '--quiet']; // on a terminal Ninja needs but one line
  await run('cmake', ['--build', '--preset', preset, ...targets.flatMap((target) => ['--target', target]), ...quietly], {
    otherwise: `${preset} does not build: correct what the compiler says above.`,
  });
}

/** Made aside and then renamed, so that dist/ is never half of one build and half of another. */
export async function makeDist() {
  const { build, transform } = await import('esbuild');
  const made = join(root, 'build', 'dist');
  const dist = join(root, 'dist');
  rmSync(made, { recursive: true, force: true });
  mkdirSync(made, { recursive: true });
  for (const name of pairs) {
    const from = join(root, 'build', name.replace('wgemm', 'wasm'), name);
    copyFileSync(`${from}.wasm`, join(made, `${name}.wasm`));
    // Emscripten's glue is not minified everywhere; it stays a file of its own, since its threads start from it.
    const glue = await transform(readFileSync(`${from}.mjs`, 'utf8'), { minify: true, format: 'esm', target: 'es2022' });
    writeFileSync(join(made, `${name}.mjs`), glue.code);
  }
  const declarations = run('tsc', ['-p', 'js/tsconfig.json', '--outDir', made, '--declarationDir', made], {
    otherwise: 'The TypeScript in js/ has the errors above: correct them and run this again.',
  });
  const bundle = build({
    entryPoints: [join(root, 'js', 'index.ts')],
    outfile: join(made, 'index.js'),
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'neutral',
    external: ['./wgemm-*.mjs', 'node:*'],
    minify: true,
    keepNames: true, // of the error classes, where a console shows them
    sourcemap: true,
    logLevel: 'warning',
  });
  await Promise.all([declarations, bundle]);
  rmSync(dist, { recursive: true, force: true });
  renameSync(made, dist);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await setUp('wasm');
    console.log('build: WebAssembly');
    await buildPreset('wasm-simd128', 'wgemm_wasm');
    console.log('build: dist/');
    await makeDist();
  });
}
