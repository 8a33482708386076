/** The limit that the benchmark states: tests/bench/limit.cc, as it was compiled and linked. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** The bytes of an instruction with vectors: its prefix, and its number in LEB128. */
const simd = (number: number) => Buffer.of(0xfd, (number & 0x7f) | 0x80, number >> 7);

const steps = {
  simd128: { float32: simd(0xe6), float64: simd(0xf2), int32: simd(0xb5), int8: simd(0xba) },
  relaxed: { float32: simd(0x105), float64: simd(0x107), int32: simd(0xb5), int8: simd(0xba) },
};

/** The code of each function that a module exports, by name. */
function exportedCode(bytes: Buffer): Map<string, Buffer> {
  let at = 8;
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  const name = () => {
    const length = number();
    return bytes.toString('utf8', at, (at += length));
  };
  const indices = new Map<string, number>();
  const codes: Buffer[] = [];
  while (at < bytes.length) {
    const section = bytes[at++];
    const end = number() + at;
    if (section === 7) {
      for (let left = number(); left > 0; --left) {
        const [exported, kind, index] = [name(), bytes[at++], number()];
        if (kind === 0) indices.set(exported, index);
      }
    } else if (section === 10) {
      for (let left = number(); left > 0; --left) {
        const length = number();
        codes.push(bytes.subarray(at, (at += length)));
      }
    }
    at = end;
  }
  const imported = WebAssembly.Module.imports(new WebAssembly.Module(new Uint8Array(bytes))).filter(
    ({ kind }) => kind === 'function',
  ).length;
  return new Map(Array.from(indices, ([exported, index]) => [exported, codes[index - imported]!]));
}

function count(part: Buffer, whole: Buffer): number {
  let found = 0;
  for (let at = whole.indexOf(part); at >= 0; at = whole.indexOf(part, at + part.length)) ++found;
  return found;
}

describe.each(['simd128', 'relaxed'] as const)('the limit in %s', (build) => {
  it.each(['float32', 'float64', 'int32', 'int8'] as const)('runs as many steps of %s as it counts', async (type) => {
    const file = fileURLToPath(new URL(`../../build/wasm-${build}/wgemm_bench_kernels`, import.meta.url));
    const glue = await readFile(`${file}.mjs`, 'utf8');
    const [, exported] = new RegExp(`_limit_${type}"\\]=wasmExports\\["(\\w+)"\\]`).exec(glue)!;
    const code = exportedCode(await readFile(`${file}.wasm`)).get(exported!)!;
    // Two loops, of twelve chains and of twenty. The compiler may unroll either.
    const found = count(steps[build][type], code);
    const unrolled = [1, 2, 4, 8];
    const allowed = unrolled.flatMap((few) => unrolled.map((many) => 12 * few + 20 * many));
    expect(allowed).toContain(found);
  });
});
