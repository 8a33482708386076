// The part of `npm run bench -- --arm` that runs in Node for arm64, which an emulator may run. It
// compiles wgemm_bench_kernels of one build, and prints one line of JSON after the code that V8
// prints: the kernel that the planner takes for each case on standard input.
//   node --print-wasm-code arm-program.mjs BUILD
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { start } from './race.mjs';

const [, , build, cases] = process.argv;
const file = join(
  import.meta.dirname,
  ...['..', '..', 'build', `wasm-${build}`, 'wgemm_bench_kernels'],
);
const { default: factory } = await import(pathToFileURL(`${file}.mjs`).href);

let table;
const compiled = new WebAssembly.Module(readFileSync(`${file}.wasm`));
const module = await start(factory, compiled, (instance) => {
  table = Object.values(instance.exports).find((each) => each instanceof WebAssembly.Table);
});
const { kernels, types } = JSON.parse(module.UTF8ToString(module._describe()));
const chosen = JSON.parse(cases).map(({ compute, type, b, m, n, k, range = 0 }) => {
  const typeOf = (name) => types.indexOf(name);
  const kernel =
    kernels[
      module._choose_on_arm(
        ...[typeOf(compute ?? type), typeOf(type)],
        ...[b === 'packed', b === 'column-major', m, n, k, range],
      )
    ];
  // The name of an exported function is its index in the module.
  return { ...kernel, index: Number(table.get(kernel.function).name) };
});
console.log(`\nchosen: ${JSON.stringify(chosen)}`);
