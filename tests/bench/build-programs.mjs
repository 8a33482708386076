// Builds the program that program.mjs loads.
import { join } from 'node:path';
import { buildPreset } from '../../scripts/build.mjs';
import { root } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';

export const fileOf = (build) => join(root, 'build', `wasm-${build}`, 'wgemm_bench_kernels');

export async function buildPrograms(builds) {
  await setUp('wasm');
  for (const build of builds) await buildPreset(`wasm-${build}`, 'wgemm_bench_kernels');
}
