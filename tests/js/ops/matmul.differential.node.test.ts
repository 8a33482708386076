/**
 * Seeded random problems of MatMul, computed by the library, by the reference, and by ONNX Runtime
 * Web if it has a kernel. Both must be as near to the reference as rounding allows. The library
 * computes each problem with its weights as they are. If they are not vector, it also computes it
 * with the weights packed, with their batch axes.
 *
 * The runtime's MatMul has no transposes, so it gets transposed data. It has no bias and no bfloat16.
 * It gets no problems with K = 0: it would return memory that it never wrote, return another shape,
 * or fail.
 */
import { describe, expect, it } from 'vitest';
import { type DType, type MatMulOptions } from 'wgemm';
import { encodeModel, type Session } from '../../peers/onnx.mjs';
import { dtypes, isFloat, set } from '../support/dtypes.js';
import { referenceMatMul, shapeOfMatMul, type Stack } from '../support/matmul-reference.js';
import { expectMatMul, gather, place, placeNames, transposed } from '../support/stacks.js';
import { count, drop, expectNear, Random } from '../support/tensors.js';
import { ort, wg } from '../support/with-ort.js';

/** One session for each type. */
const sessions = new Map<DType, Session>();

async function runOrt(dtype: DType, src: Stack, weights: Stack): Promise<Stack> {
  let session = sessions.get(dtype);
  if (!session) {
    const inputs = ['A', 'B'].map((name) => ({ name, dtype }));
    session = await ort.createSession(encodeModel({ type: 'MatMul', inputs, output: { dtype } }));
    sessions.set(dtype, session);
  }
  const { Y } = await session.run({
    A: ort.tensor({ ...src, dtype }),
    B: ort.tensor({ ...weights, dtype }),
  });
  return { data: Y.data, shape: Y.dims, dtype };
}

const inOrt = (dtype: DType) => dtype !== 'bfloat16';

/** Small sizes more often than large ones, up to 40. */
const size = (random: Random) => Math.floor(41 ** random.next());

/**
 * Shapes of src and weights: vectors, or up to three batch axes, each of which either or both of
 * them may have, or have as 1.
 */
function drawShapes(
  random: Random,
  { transposeA, transposeB }: MatMulOptions,
): [src: number[], weights: number[]] {
  const [m, n, k] = [size(random), size(random), random.next() < 0.05 ? 0 : size(random)];
  const batch = Array.from({ length: random.pick([0, 1, 1, 2, 3]) }, () =>
    random.pick([1, 2, 3, 5]),
  );
  const axes = () =>
    batch
      .map((size) => (random.next() < 0.3 ? 1 : size))
      .slice(random.next() < 0.3 ? random.between(0, batch.length) : 0);
  const src = random.next() < 0.1 ? [k] : [...axes(), ...(transposeA ? [k, m] : [m, k])];
  const weights = random.next() < 0.1 ? [k] : [...axes(), ...(transposeB ? [n, k] : [k, n])];
  return [src, weights];
}

/** Puts special numbers among the values. */
function sprinkle(random: Random, dtype: DType, { data }: Stack, kind: string): void {
  const share = kind === 'NaN and infinities' ? 2 / data.length : 0.3;
  for (let i = 0; i < data.length; ++i) {
    if (random.next() < share)
      set(
        data,
        dtype,
        i,
        kind === 'zeros' ? random.pick([0, -0]) : random.pick([NaN, Infinity, -Infinity]),
      );
  }
}

describe.each(dtypes)('%s', (dtype) => {
  it.each([
    [false, false],
    [false, true],
    [true, false],
    [true, true],
  ])('transposeA %o, transposeB %o', async (transposeA, transposeB) => {
    const random = new Random(
      1000 + dtypes.indexOf(dtype) * 4 + Number(transposeA) * 2 + Number(transposeB),
    );
    const flags = { transposeA, transposeB };
    let [compared, packs, batches] = [0, 0, 0];
    for (let i = 0; i < 30; ++i) {
      const [srcShape, weightsShape] = drawShapes(random, flags);
      const places = [
        random.pick(placeNames),
        random.pick(placeNames),
        random.pick(placeNames),
        random.pick(placeNames),
      ] as const;
      const src = place(wg, places[0], dtype, srcShape, random);
      const weights = place(wg, places[1], dtype, weightsShape, random);
      const kind = random.pick(['plain numbers', 'plain numbers', 'zeros', 'NaN and infinities']);
      if (isFloat(dtype) && kind !== 'plain numbers')
        for (const input of [src, weights]) sprinkle(random, dtype, input, kind);
      const what = JSON.stringify({ srcShape, weightsShape, ...flags, places, kind });

      const wanted = referenceMatMul(src, weights, null, flags);
      const shape = shapeOfMatMul(srcShape, weightsShape, flags) as number[];
      if (inOrt(dtype) && !srcShape.includes(0)) {
        const found = await runOrt(
          dtype,
          transposeA ? transposed(src) : gather(src),
          transposeB ? transposed(weights) : gather(weights),
        );
        expect(found.shape, what).toEqual(shape);
        const flat: [number, number] = [1, count(shape)];
        expectNear(
          { ...found, shape: flat },
          { ...(wanted as NonNullable<typeof wanted>), shape: flat },
          `of the runtime, ${what}`,
        );
        ++compared;
      }
      const bias = random.tensor(
        dtype,
        shape.map((size) => random.pick([1, size])).slice(random.between(0, shape.length)),
      );
      const out = random.pick([undefined, place(wg, places[2], dtype, shape, random)]);
      const packed =
        weightsShape.length > 1 ? wg.pack(weights, { op: 'matmul', trans: transposeB }) : undefined;
      for (const stored of packed ? [undefined, packed] : [undefined]) {
        const form = stored ? `${what}, packed` : what;
        expectMatMul(wg, src, weights, null, flags, form, stored);
        const withBias = `${form}, bias [${bias.shape.join(', ')}]`;
        const alpha = random.pick([1, -2, 0.37]);
        const options = { ...flags, alpha, ...(out && { out }) };
        expectMatMul(wg, src, weights, bias, options, `${withBias}, alpha ${alpha}`, stored);
      }
      if (packed) ++packs;
      if (packed && packed.shape.length > 2) ++batches;
      drop(packed);
      drop(src, weights, out);
    }
    expect(packs, 'problems with packed weights').toBeGreaterThan(20);
    expect(batches, 'those with batches of weights').toBeGreaterThan(8);
    if (inOrt(dtype))
      expect(compared, 'problems that the runtime has computed').toBeGreaterThan(22);
  });
});

it('the runtime is wrong or fails on the problems that it does not get', async () => {
  const one = { data: new Uint16Array(1), shape: [1, 1] };
  await expect(runOrt('bfloat16', one, one)).rejects.toThrow('Could not find an implementation');
  const empty = { data: new Float32Array(0), shape: [1, 3, 0] };
  expect((await runOrt('float32', empty, { ...empty, shape: [2, 0, 3] })).shape).toEqual([1, 3, 3]); // not [2, 3, 3]
});
