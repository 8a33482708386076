/**
 * Seeded random problems, computed by the library, by the reference, and by ONNX Runtime Web if it
 * has a kernel: Gemm of float32, float64 and float16 from opset 7, and MatMul of integers. Library
 * and runtime must both be as near to the reference as rounding allows. The library computes each
 * problem with B as it is and with B packed.
 *
 * The runtime computes all values, also NaN and infinities: it reads no C if beta is 0, and keeps
 * 0 * NaN if alpha is 0, as ONNX says. It has no kernel for opsets 1 and 6, for bfloat16, or for
 * alpha, beta and C of integers. If K is 0, it drops beta * C. It computes none of these here.
 */
import { describe, expect, it } from 'vitest';
import { type DType, type GemmOptions, type TensorLike } from 'wgemm';
import { encodeModel, type Session } from '../../peers/onnx.mjs';
import { arrayClasses, dtypes, type Float, floats, isFloat, set } from '../support/dtypes.js';
import { elements, list, type Matrix, referenceGemm } from '../support/reference.js';
import {
  expectGemmTwice,
  expectNear,
  place,
  placeNames,
  Random,
  snapshot,
  tensor,
} from '../support/tensors.js';
import { ort, wg } from '../support/with-ort.js';

/** One session for each model. */
const sessions = new Map<string, Session>();
let runs = 0;

async function runOrt(
  type: string,
  opset: number,
  attributes: object,
  dtype: DType,
  inputs: (Matrix | null)[],
): Promise<Matrix> {
  const names = inputs.map((input, i) => input && { name: 'ABC'.charAt(i), dtype });
  const key = JSON.stringify([type, opset, attributes, names]);
  let session = sessions.get(key);
  if (!session) {
    session = await ort.createSession(
      encodeModel({ type, opset, attributes, inputs: names, output: { dtype } }),
    );
    sessions.set(key, session);
  }
  const feeds = inputs.flatMap((input, i) =>
    input ? [['ABC'.charAt(i), ort.tensor({ ...input, dtype })] as const] : [],
  );
  const { Y } = await session.run(Object.fromEntries(feeds));
  ++runs;
  return { data: Y.data, shape: Y.dims, dtype };
}

const shapesOfC: readonly ((m: number, n: number) => number[] | undefined)[] = [
  () => undefined,
  () => [],
  () => [1],
  (_, n) => [n],
  () => [1, 1],
  (_, n) => [1, n],
  (m) => [m, 1],
  (m, n) => [m, n],
  (m, n) => [m, n], // to be written over
];
// Numbers that float32 holds: attributes of a model are float32, also for operands of float64.
const factors: readonly GemmOptions[] = [
  { alpha: 1, beta: 1 },
  { alpha: 0.5, beta: -2 },
  { alpha: -3, beta: 0.375 },
  { alpha: 3, beta: 7 },
  { alpha: 0, beta: 1 },
  { alpha: 2, beta: 0 },
  { alpha: 0, beta: 0 },
];
const exactFactors: readonly GemmOptions[] = [
  { alpha: 2n ** 63n - 1n, beta: -3n },
  { alpha: -2, beta: 2n ** 64n - 5n },
];

/** Small sizes more often than large ones, up to 70. */
const size = (random: Random) => Math.floor(71 ** random.next());

/** Puts numbers of a kind among the values. */
function sprinkle(random: Random, dtype: Float, { data }: TensorLike, kind: string): void {
  const { digits, least } = floats[dtype];
  const kinds: Record<string, () => number> = {
    'plain numbers': () => random.next(),
    zeros: () => random.pick([0, -0]),
    subnormals: () =>
      random.pick([1, -1]) *
      Math.ceil(random.next() * 2 ** (digits - 1)) *
      2 ** (least - digits + 1),
    'NaN and infinities': () => random.pick([NaN, Infinity, -Infinity]),
  };
  // In few places, so that most of the result stays a number.
  const share = kind === 'NaN and infinities' ? 1 / data.length : 0.3;
  for (let i = 0; i < data.length; ++i)
    if (random.next() < share) set(data, dtype, i, (kinds[kind] as () => number)());
}
const kinds = ['plain numbers', 'zeros', 'subnormals', 'NaN and infinities'];

/** A copy without gaps, as the runtime takes it. */
function contiguous(dtype: DType, matrix: TensorLike, transposed = false): Matrix {
  const copy = snapshot(matrix);
  const [rows = 1, columns = 1] = copy.shape.length === 2 ? copy.shape : [1, ...copy.shape];
  const at = elements(dtype, copy);
  if (transposed)
    return tensor(
      dtype,
      [columns, rows],
      list(columns, rows, (i, j) => at(j, i)),
    );
  return tensor(dtype, copy.shape, list(rows, columns, at));
}

describe.each(dtypes)('%s', (dtype) => {
  const inOrt = isFloat(dtype) ? (dtype === 'bfloat16' ? undefined : 'Gemm') : 'MatMul';
  const opsets =
    dtype === 'bfloat16' ? [13, 21] : isFloat(dtype) ? [1, 6, 7, 9, 11, 13] : [9, 11, 13];

  it.each([
    [false, false],
    [false, true],
    [true, false],
    [true, true],
  ])('transA %o, transB %o', async (transA, transB) => {
    const random = new Random(dtypes.indexOf(dtype) * 4 + Number(transA) * 2 + Number(transB));
    runs = 0;
    for (const factor of dtype.endsWith('t64') && !isFloat(dtype)
      ? [...factors, ...exactFactors]
      : factors) {
      for (const shapeOfC of shapesOfC) {
        const [m, n, k] = [size(random), size(random), size(random)];
        const make = (shape: readonly number[]) =>
          place(wg, random.pick(placeNames), dtype, shape, random);
        const a = make(transA ? [k, m] : [m, k]);
        const b = make(transB ? [n, k] : [k, n]);
        const shape = shapeOfC(m, n);
        const c = shape && make(shape);
        const kind = random.pick(kinds);
        if (isFloat(dtype))
          for (const input of [a, b, c]) if (input) sprinkle(random, dtype, input, kind);
        const opset = random.pick(opsets.filter((opset) => opset >= 11 || c));
        const options: GemmOptions = {
          ...factor,
          transA,
          transB,
          opset,
          ...(opset < 7 ? { broadcast: true } : {}),
        };
        const what = `${m} x ${n} x ${k}, C ${JSON.stringify(shape)}, alpha ${factor.alpha}, beta ${factor.beta}, opset ${opset}, ${kind}`;

        const wantsOrt = inOrt !== undefined && opset >= 7;
        if (wantsOrt && inOrt === 'MatMul') {
          const [left, right] = [contiguous(dtype, a, transA), contiguous(dtype, b, transB)];
          expectNear(
            await runOrt('MatMul', opset, {}, dtype, [left, right]),
            referenceGemm(left, right, null),
            `of the runtime, ${what}`,
          );
        } else if (wantsOrt) {
          const [left, right, bias] = [
            contiguous(dtype, a),
            contiguous(dtype, b),
            c ? contiguous(dtype, c) : null,
          ];
          const attributes = {
            alpha: { float: factor.alpha },
            beta: { float: factor.beta },
            transA: Number(transA),
            transB: Number(transB),
          };
          const found = await runOrt('Gemm', opset, attributes, dtype, [left, right, bias]);
          expectNear(found, referenceGemm(left, right, bias, options), `of the runtime, ${what}`);
        }

        if (shapeOfC === shapesOfC.at(-1)) options.out = c;
        else if (random.next() < 0.3) options.out = make([m, n]);
        expectGemmTwice(wg, a, b, c, options, what);
        for (const used of [a, b, c, options.out]) if (used && 'dispose' in used) used.dispose();
      }
    }
    // All problems, except problems of opsets 1 and 6.
    expect(runs, 'problems that the runtime has computed').toBeGreaterThanOrEqual(inOrt ? 35 : 0);
  });
});

it('the runtime is none for the types that it is not asked about', async () => {
  const run = (type: string, dtype: DType) => {
    const one = { data: new arrayClasses[dtype](1), shape: [1, 1] };
    return runOrt(type, 13, {}, dtype, [one, one]);
  };
  await expect(run('Gemm', 'bfloat16')).rejects.toThrow('Could not find an implementation');
  await expect(run('Gemm', 'int32')).rejects.toThrow('Could not find an implementation');
});
