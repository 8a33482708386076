// Loads the program wgemm_bench_kernels of the build 'relaxed' or 'simd128', in Node, in Bun or in
// a page: the micro-kernels alone (kernels.cc), and the limit (limit.cc).
import { start } from './race.mjs';

const addressOf = (build, ending) =>
  new URL(`../../build/wasm-${build}/wgemm_bench_kernels.${ending}`, import.meta.url);

async function bytesAt(address) {
  if (address.protocol !== 'file:') return (await fetch(address)).arrayBuffer();
  return (await import('node:fs/promises')).readFile(address);
}

/**
 * The factory of its glue and its compiled module, or undefined if the engine does not accept that
 * build.
 */
export async function loadProgram(build) {
  const bytes = await bytesAt(addressOf(build, 'wasm'));
  if (!WebAssembly.validate(bytes)) return undefined;
  const { default: factory } = await import(addressOf(build, 'mjs').href);
  return { factory, compiled: await WebAssembly.compile(bytes) };
}

/** A new instance of a program that the engine accepts. */
export async function startProgram(build) {
  const { factory, compiled } = await loadProgram(build);
  return start(factory, compiled);
}
