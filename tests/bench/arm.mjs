// npm run bench -- --arm: the kernels that the planner takes on ARM, as V8 compiles them for arm64,
// and their speed by models of four processors. No ARM processor is needed, and none is measured.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeOn } from '../../scripts/arm64.mjs';
import { fail } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';
import {
  callsOf,
  chainsOf,
  cyclesOf,
  disassemble,
  models,
  peakOf,
  splatsOf,
} from './arm-models.mjs';
import { buildPrograms, fileOf } from './build-programs.mjs';

const builds = ['relaxed', 'simd128'];
const size = { n: 1024, k: 1024 };

/** `type`: of B. `compute`: absent if it is the same. `range`: of 8-bit weights. */
const products = [
  ...[512, 1, 2, 3, 4].map((m) => ({ m, type: 'float32', b: 'packed' })),
  ...[12, 2, 1].map((m) => ({ m, type: 'float32', b: 'row-major' })),
  { m: 1, type: 'float32', b: 'column-major' },
  ...[512, 1, 2].map((m) => ({ m, type: 'float64', b: 'packed' })),
  ...[512, 1].map((m) => ({ m, type: 'int32', b: 'packed' })),
  { m: 512, type: 'int8', b: 'packed', range: 254, label: 'no -128' },
  { m: 512, type: 'int8', b: 'packed', range: 255 },
  { m: 512, type: 'int8', b: 'row-major' },
  ...[2, 3, 4].map((m) => ({ m, type: 'int8', b: 'packed', range: 254, label: 'no -128' })),
  { m: 4, type: 'int8', b: 'packed', range: 255 },
  { m: 4, type: 'int8', b: 'row-major' },
  { m: 1, type: 'int8', b: 'packed', range: 254, label: 'no -128' },
  { m: 1, type: 'int8', b: 'packed', range: 255 },
  { m: 1, type: 'int8', b: 'row-major' },
  ...['bfloat16', 'float16'].flatMap((type) => [
    ...[1, 4].map((m) => ({ m, type, compute: 'float32', b: 'packed' })),
    { m: 1, type, compute: 'float32', b: 'row-major' },
    { m: 1, type, compute: 'float32', b: 'column-major' },
  ]),
].map((product) => ({ ...size, ...product }));

const bytesOf = { float32: 4, float64: 8, int32: 4, int8: 1, bfloat16: 2, float16: 2 };

export async function modelArm({ filter }) {
  await setUp('mca', ...(process.arch === 'arm64' ? [] : ['arm64']));
  await buildPrograms(builds);
  console.log(
    'Models, not measurements: no ARM processor ran any of this. V8 compiled the kernels for\n' +
      'arm64; scheduling models of LLVM (A76 by neoverse-n1, X1 by neoverse-v1, A55) and bounds\n' +
      'by hand (M1: at most) tell how many cycles an inner loop takes if its data is in L1. The\n' +
      'model of the A55 has no forwarding: it only serves to compare kernels.',
  );
  const names = products.map((product) => ({ ...product, name: nameOf(product) }));
  const found = builds.flatMap((build) =>
    modelBuild(
      build,
      names.filter(({ name }) => `${build} ${name}`.includes(filter)),
    ),
  );
  if (found.length === 0) fail(`bench: no product contains "${filter}"; one is ${names[0].name}`);
  for (const each of found) {
    console.log(`\n${each.build} ${each.name}: ${each.kernel}, ${each.loop.length} instructions`);
    console.log(each.loop.map((line) => `    ${line.replace(/\s+/g, ' ')}`).join('\n'));
  }
  printTable(found);
}

const nameOf = ({ m, type, b, label }) =>
  [type, m === 1 ? 'GEMV' : `M=${m}`, b, label].filter(Boolean).join(' ');

/** The kernel, the inner loop and the speed of each product in one build. */
function modelBuild(build, wanted) {
  if (wanted.length === 0) return [];
  const { functions, chosen } = compileForArm(build, wanted);
  const wasm = `${fileOf(build)}.wasm`;
  const module = new WebAssembly.Module(readFileSync(wasm));
  const imports = WebAssembly.Module.imports(module).filter(({ kind }) => kind === 'function');
  const calls = callsOf(wasm, imports.length);
  const loopsIn = new Map();
  const innerLoops = (index) => {
    if (!loopsIn.has(index)) loopsIn.set(index, loopsOf(functions.get(index) ?? []));
    return loopsIn.get(index);
  };
  const results = wanted.map((product, i) => {
    const { name: kernel, mr, index } = chosen[i];
    const rows = Math.min(product.m, mr);
    const own = innerLoops(index);
    // Tiles may be functions of their own.
    const all = () => [...own, ...[...calls.get(index)].flatMap(innerLoops)];
    let found = hottest(own, rows);
    if (!found || found.rows > rows) found = hottest(all(), rows);
    if (!found) fail(`bench: ${kernel} has no inner loop with ${rows} rows`);
    const { loop } = found;
    // The share of the tile's rows that serve the result.
    const used = found.rows > rows ? rows / found.rows : 1;
    return { ...product, build, kernel, rows, loop, used };
  });
  const cycles = cyclesOf(results.map(({ loop }) => loop));
  return results.map((result, i) => ({ ...result, cycles: cycles[i], ...workOf(result) }));
}

/** The instructions of each function by its index, and the kernels that the planner takes. */
function compileForArm(build, wanted) {
  const [program, ...before] = nodeOn('max');
  const flags = ['--no-liftoff', '--no-wasm-lazy-compilation', '--print-wasm-code'];
  const script = join(import.meta.dirname, 'arm-program.mjs');
  const args = [...before, ...flags, '--wasm-num-compilation-tasks=0', script, build];
  const { status, stdout, stderr } = spawnSync(program, [...args, JSON.stringify(wanted)], {
    encoding: 'utf8',
    maxBuffer: 1e9,
  });
  if (status !== 0) fail(`bench: Node for arm64 failed: ${stderr.slice(-1000)}`);
  const functions = new Map();
  let code;
  for (const line of stdout.split('\n')) {
    const index = /^index: (\d+)$/.exec(line);
    if (index) functions.set(Number(index[1]), (code = []));
    if (line.startsWith('--- End code')) code = undefined;
    const [, address, word, text] =
      /^0x([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]{8}) +(\S.*)$/.exec(line) ?? [];
    if (text) code?.push({ address: parseInt(address, 16), word, text });
  }
  return { functions, chosen: JSON.parse(/^chosen: (.*)$/m.exec(stdout)[1]) };
}

/** The innermost loops of a function, each a list of instructions. */
function loopsOf(code) {
  const at = new Map(code.map(({ address }, i) => [address, i]));
  const loops = code.flatMap(({ text }, end) => {
    const target = /^(?:b|b\.\w+|cbn?z|tbn?z) .*\(addr 0x([0-9a-f]+)\)/.exec(text)?.[1];
    const begin = at.get(parseInt(target, 16));
    return begin <= end ? [{ begin, end }] : [];
  });
  // Code that is seldom run, such as calls of the engine, lies elsewhere and jumps back.
  const innermost = loops.filter(
    ({ begin, end }) =>
      !code.slice(begin, end).some(({ text }) => /^(blr?|ret)\b/.test(text)) &&
      !loops.some(
        (other) =>
          other.begin >= begin && other.end <= end && other.end - other.begin < end - begin,
      ),
  );
  return innermost.map(({ begin, end }) =>
    disassemble(code.slice(begin, end + 1).map(({ word }) => word)),
  );
}

const multiplies = /^(fmla|fmul|mla|mul|sdot|smull2?)\s+v.*\bv/;
const count = (loop, pattern) => loop.filter((line) => pattern.test(line)).length;

/**
 * The loop that does most of the work of a strip of `rows` rows. A loop over panels splats an
 * element of each row per step of k; V8 unrolls it, so that each chain of sums has several steps.
 * Of equal loops it is the one that takes more steps of k between two exits. The other one is for
 * the last steps.
 */
function hottest(loops, rows) {
  const counted = loops.map((loop) => {
    const steps = Math.max(1, ...chainsOf(loop).values());
    const multiplications = count(loop, multiplies);
    return {
      loop,
      work: multiplications / steps,
      perExit: multiplications / (1 + count(loop, /^(cbn?z|tbn?z)\s/)),
      rows: splatsOf(loop) / steps,
    };
  });
  const fitting = counted.filter((each) => each.work > 0 && each.rows >= rows);
  const least = Math.min(...fitting.map((each) => each.rows));
  const chosen = fitting.length > 0 ? fitting.filter((each) => each.rows === least) : counted;
  return chosen
    .filter(({ work }) => work > 0)
    .sort((a, b) => b.work - a.work || b.perExit - a.perExit)[0];
}

/** Multiply-adds per iteration that serve the result, and the bytes of B that it reads. */
function workOf({ loop, kernel, compute, type, rows, used }) {
  const lanes = (pattern, each) => count(loop, pattern) * each;
  let adds;
  if ((compute ?? type) === 'float32') adds = lanes(/^(fmla|fadd)\s.*4s/, 4);
  else if (type === 'float64') adds = lanes(/^(fmla|fadd)\s.*2d/, 2);
  else if (type === 'int32') adds = lanes(/^(mla|mul)\s.*4s/, 4);
  else if (count(loop, /^sdot/)) adds = lanes(/^sdot/, kernel.includes('masked') ? 8 : 16);
  else adds = lanes(/^smull2?\s+v\d+\.4s/, 4);
  adds *= used;
  return { adds, bytes: (adds / rows) * bytesOf[type] };
}

function printTable(found) {
  const peaks = new Map();
  const peak = (type) => peaks.get(type) ?? peaks.set(type, peakOf(type)).get(type);
  const clocks = models.map(({ name, ghz }) => `${ghz} GHz (${name})`).join(', ');
  console.log(
    '\nShare of the peak of the processor: of fused multiply-adds for floats, of multiply-adds\n' +
      'for int32, of dot products for int8. In brackets, multiply-adds per cycle. For GEMV,\n' +
      `GB/s of B at ${clocks}; memory is slower.\n`,
  );
  const width = Math.max(...found.map(({ build, name }) => `${build} ${name}`.length)) + 2;
  const kernels = Math.max(...found.map(({ kernel }) => kernel.length)) + 2;
  const head = models.map(({ name }) => name.padStart(12)).join('');
  console.log(`${''.padEnd(width)}${'kernel'.padEnd(kernels)}  ${head}`);
  for (const each of found) {
    const cells = each.cycles.map((cycles, i) => {
      if (each.m === 1) return `${((each.bytes / cycles) * models[i].ghz).toFixed(0)} GB/s`;
      const rate = each.adds / cycles;
      const share = rate / peak(each.compute ?? each.type)[i];
      return `${(share * 100).toFixed(0)}% (${rate.toFixed(1)})`;
    });
    console.log(
      `${`${each.build} ${each.name}`.padEnd(width)}${each.kernel.padEnd(kernels)}  ` +
        cells.map((cell) => cell.padStart(12)).join(''),
    );
  }
  console.log('\nThese are models, not measurements.');
}
