// Builds the programs that program.mjs loads.
import { join } from 'node:path';
import { buildPreset } from '../../scripts/build.mjs';
import { fail, root } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';

export const fileOf = (build) => join(root, 'build', `wasm-${build}`, 'wgemm_bench_kernels');

/** The default is the first that the engine accepts, as in createGemm if the engine fuses. */
export const builds = ['relaxed', 'simd128'];

/** Fails if the option --build names another build. */
export function checkBuild(build) {
  if (!builds.includes(build))
    fail(`bench: there is no build '${build}'; there are ${builds.join(' and ')}`);
}

export async function buildPrograms(builds, name = 'wgemm_bench_kernels') {
  await setUp('wasm');
  for (const build of builds) await buildPreset(`wasm-${build}`, name);
}
