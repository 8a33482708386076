/** Computes the fixed problems with vectors of 16 and of 32 bytes. The program prints a `Found`. */
import { createGemm, type Gemm } from 'wgemm';
import { hashOf, makeProblems, type Problem, run, serialized } from '../support/fixed-problems.js';

/** What it finds with vectors of these bytes. */
interface Results {
  /** Hashes of strict results, and of packed weights. */
  readonly strict: string;
  readonly serialized: string;
  /** Names of problems with hashes of their results, of B unpacked and of B packed. */
  readonly fast: string[];
  /** The kernels of these problems. */
  readonly kernels: string[];
}

export type Found = Record<16 | 32, Results>;

/** B unpacked, and packed. */
const forms = [false, true];

function kernelOf(wg: Gemm, { op, attributes, operands }: Problem, isPacked: boolean): string {
  const pack = (b: unknown, trans: number) =>
    wg.pack(b as never, { op: op as 'gemm', trans }) as never;
  if (op === 'gemm') {
    const [a, b, c] = operands;
    const [alpha, beta, transA, transB] = attributes;
    return isPacked
      ? wg.explain('gemm', a, pack(b, transB), c, { alpha, beta, transA }).kernel
      : wg.explain('gemm', a, b, c, { alpha, beta, transA, transB }).kernel;
  }
  if (op === 'matmul') {
    const [transposeA, transposeB] = attributes;
    const [src, weights, bias] = operands;
    return isPacked
      ? wg.explain('matmul', src, pack(weights, transposeB), bias, { transposeA }).kernel
      : wg.explain('matmul', src, weights, bias, { transposeA, transposeB }).kernel;
  }
  const [a, aScale, aZeroPoint, b, bScale, bZeroPoint] = operands;
  const [, transA, transB] = attributes;
  const inputs = { a, aScale, aZeroPoint, b, bScale, bZeroPoint };
  return isPacked
    ? wg.explain('qgemm', { ...inputs, b: pack(b, transB) } as never, { transA }).kernel
    : wg.explain('qgemm', inputs as never, { transA, transB }).kernel;
}

async function resultsOf(vectors: 16 | 32): Promise<Results> {
  const problems = makeProblems();
  using strict = await createGemm({ determinism: 'strict', vectors });
  using fast = await createGemm({ vectors });
  const each = problems.flatMap((problem) => forms.map((isPacked) => ({ problem, isPacked })));
  return {
    strict: await hashOf(problems.map((problem) => run(strict, problem))),
    serialized: await hashOf(problems.map((problem) => serialized(fast, problem))),
    fast: await Promise.all(
      each.map(async ({ problem, isPacked }) => {
        const result = run(fast, problem, isPacked ? fast : undefined);
        return `${problem.name}${isPacked ? ', packed' : ''}: ${await hashOf([result])}`;
      }),
    ),
    kernels: each.map(({ problem, isPacked }) => kernelOf(fast, problem, isPacked)),
  };
}

const found: Found = { 16: await resultsOf(16), 32: await resultsOf(32) };
console.log(JSON.stringify(found));
