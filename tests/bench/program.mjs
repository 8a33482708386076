// Loads a program of the build 'relaxed' or 'simd128', in Node, in Bun or in a page. The program
// wgemm_bench_kernels has the micro-kernels alone (kernels.cc), and the limit (limit.cc).
import { start } from './race.mjs';

const kernels = 'wgemm_bench_kernels';

const addressOf = (build, file) => new URL(`../../build/wasm-${build}/${file}`, import.meta.url);

async function bytesAt(address) {
  if (address.protocol !== 'file:') return (await fetch(address)).arrayBuffer();
  return (await import('node:fs/promises')).readFile(address);
}

/**
 * The factory of its glue and its compiled module, or undefined if the engine does not accept that
 * build.
 */
export async function loadProgram(build, name = kernels) {
  const bytes = await bytesAt(addressOf(build, `${name}.wasm`));
  if (!WebAssembly.validate(bytes)) return undefined;
  const { default: factory } = await import(addressOf(build, `${name}.mjs`).href);
  return { factory, compiled: await WebAssembly.compile(bytes) };
}

/** A new instance of a program that the engine accepts. */
export async function startProgram(build, name = kernels) {
  const { factory, compiled } = await loadProgram(build, name);
  return start(factory, compiled);
}
