// Loads the program wgemm_bench_kernels of the build 'relaxed' or 'simd128': the micro-kernels
// alone (kernels.cc), and the limit (limit.cc).
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildPreset } from '../../scripts/build.mjs';
import { root } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';
import { start } from './race.mjs';

export const fileOf = (build) => join(root, 'build', `wasm-${build}`, 'wgemm_bench_kernels');

export async function buildPrograms(builds) {
  await setUp('wasm');
  for (const build of builds) await buildPreset(`wasm-${build}`, 'wgemm_bench_kernels');
}

/**
 * The factory of its glue and its compiled module, or undefined if the engine does not accept that
 * build.
 */
export async function loadProgram(build) {
  const bytes = await readFile(`${fileOf(build)}.wasm`);
  if (!WebAssembly.validate(bytes)) return undefined;
  const { default: factory } = await import(pathToFileURL(`${fileOf(build)}.mjs`).href);
  return { factory, compiled: await WebAssembly.compile(bytes) };
}

/** A new instance of a program that the engine accepts. */
export async function startProgram(build) {
  const { factory, compiled } = await loadProgram(build);
  return start(factory, compiled);
}
