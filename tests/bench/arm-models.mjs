// Models of ARM processors: how many cycles the inner loop of a kernel takes. Three are scheduling
// models of LLVM, run by llvm-mca. LLVM's model of the Apple M1 is a model of an older core, so
// this file computes bounds for it. Models assume that all data is in L1.
import { spawnSync } from 'node:child_process';
import { fail, onPath } from '../../scripts/run.mjs';

/**
 * `ghz`: the clock that GB/s are stated for. `mca`: LLVM's model. LLVM 19's own models of the A76
 * and the X1 are models of older cores; the Neoverse cores are their siblings.
 */
export const models = [
  { name: 'A76', ghz: 2.8, mca: 'neoverse-n1' },
  { name: 'X1', ghz: 2.8, mca: 'neoverse-v1' },
  { name: 'M1', ghz: 3.2 },
  { name: 'A55', ghz: 1.8, mca: 'cortex-a55' },
];

const m1 = { instructions: 8, vector: 4, loads: 3, latency: 4 };
const iterations = 500;
const versions = ['-19', ''];

function llvm(program, args, input) {
  const found = versions.map((version) => onPath(program + version)).find(Boolean);
  if (!found) fail(`bench: ${program} is not here: install LLVM 19.`);
  const { status, stdout, stderr } = spawnSync(found, args, {
    input,
    encoding: 'utf8',
    maxBuffer: 1e9,
  });
  if (status !== 0) fail(`bench: ${program} failed: ${stderr.slice(0, 1000)}`);
  return stdout;
}

/** Functions of a module: for each index, the indices of those that it calls. */
export function callsOf(wasm, imports) {
  const calls = new Map();
  let index = imports - 1;
  const text = llvm('llvm-objdump', ['-d', '--no-show-raw-insn', wasm]);
  for (const line of text.split('\n')) {
    if (/^[0-9a-f]+ <(?!CODE>).*>:$/.test(line)) calls.set(++index, new Set());
    const called = /\scall\t(\d+)/.exec(line);
    if (called) calls.get(index).add(Number(called[1]));
  }
  return calls;
}

/** Instructions, which V8 and LLVM write differently, as LLVM writes them. */
export function disassemble(words) {
  const bytes = words.map((word) =>
    word
      .match(/../g)
      .reverse()
      .map((byte) => `0x${byte}`)
      .join(' '),
  );
  const flags = ['--disassemble', '--triple=aarch64', '--mattr=+all'];
  return llvm('llvm-mc', flags, bytes.join('\n'))
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith('.'));
}

/** For each loop, a list of instructions: cycles per iteration on each of the models. */
export function cyclesOf(loops) {
  const input = loops.map((loop, i) =>
    [`# LLVM-MCA-BEGIN loop${i}`, ...loop, `# LLVM-MCA-END loop${i}`].join('\n'),
  );
  const byModel = models.map(({ mca }) => {
    if (!mca) return loops.map(cyclesOnM1);
    const flags = ['--mtriple=aarch64', `--mcpu=${mca}`, `--iterations=${iterations}`];
    const quiet = ['--resource-pressure=false', '--instruction-info=false'];
    const text = llvm('llvm-mca', [...flags, ...quiet], `${input.join('\n')}\n`);
    return [...text.matchAll(/^Total Cycles: +(\d+)/gm)].map(([, all]) => all / iterations);
  });
  return loops.map((_, i) => byModel.map((cycles) => cycles[i]));
}

/** The least that the widths of the core and the chains of sums allow. */
function cyclesOnM1(loop) {
  const count = (test) => loop.filter(test).length;
  return Math.max(
    loop.length / m1.instructions,
    count(isVector) / m1.vector,
    count((line) => /^ld/.test(line)) / m1.loads,
    Math.max(0, ...chainsOf(loop).values()) * m1.latency,
  );
}

/** Elements of A per iteration: splats, or lanes that multiplications name. */
export function splatsOf(loop) {
  const lanes = loop.flatMap((line) => line.match(/v\d+\.[sd]\[\d\]$/) ?? []);
  const splats = loop.filter((line) => /^(ld1r|dup)\s/.test(line));
  return splats.length > 0 ? splats.length : new Set(lanes).size;
}

/** How often an iteration adds to each register that lives from iteration to iteration. */
export function chainsOf(loop) {
  const chains = new Map();
  const begins = new Set(); // registers that the loop also writes otherwise
  for (const line of loop) {
    const [operation] = line.split(/\s/);
    const [to, ...from] = line.match(/\b[vq]\d+/g) ?? [];
    if (!to || operation.startsWith('st')) continue;
    const register = to.replace('q', 'v');
    const adds = /^([fs]?ml[as]|sdot|[su]adalp)/.test(operation) || from.includes(to);
    if (adds) chains.set(register, (chains.get(register) ?? 0) + 1);
    else begins.add(register);
  }
  for (const register of begins) chains.delete(register);
  return chains;
}

/** Whether an instruction takes a vector unit. A load that splats does, a plain load does not. */
const isVector = (line) =>
  /^ld\dr/.test(line) || (!/^(ld|st)/.test(line) && /\b[vqds]\d+\b/.test(line));

/** Multiply-adds per cycle on each model if all vector units do nothing else. */
export function peakOf(type) {
  const instruction = {
    float32: 'fmla vX.4s, v30.4s, v31.4s',
    float64: 'fmla vX.2d, v30.2d, v31.2d',
    int32: 'mla vX.4s, v30.4s, v31.4s',
    int8: 'sdot vX.4s, v30.16b, v31.16b',
  }[type];
  const loop = Array.from({ length: 28 }, (_, i) => instruction.replace('X', i));
  const lanes = { float32: 4, float64: 2, int32: 4, int8: 16 }[type];
  return cyclesOf([loop])[0].map((cycles) => (loop.length * lanes) / cycles);
}
