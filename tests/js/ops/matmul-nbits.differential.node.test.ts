/**
 * Seeded random problems of matmulNBits at level 0, computed by the library with the weights as they
 * are and packed, and by ONNX Runtime Web: both are within the bound of the reference.
 */
import { it } from 'vitest';
import { type DType } from 'wgemm';
import { encodeModel } from '../../peers/onnx.mjs';
import {
  allBits,
  argumentsOf,
  blockSizes,
  type Call,
  describeCall,
  draw,
  expectNear,
  placed,
  reference,
  zeroKinds,
} from '../support/nbits.js';
import type { Matrix } from '../support/reference.js';
import { Random } from '../support/random.js';
import { ort, wg } from '../support/with-ort.js';

/** Constant: the weights are a part of the model. */
async function runOrt({ a, weights, bias, level }: Call, constant: boolean): Promise<Matrix> {
  const { data, scales, zeroPoints, k, n, bits, blockSize } = weights;
  const all: Record<string, Matrix | undefined> = { A: a, B: data, scales, zeroPoints, bias };
  const inputs = ['A', 'B', 'scales', 'zeroPoints', 'g_idx', 'bias'].map((name) => {
    const input = all[name];
    if (!input) return null;
    const declared = { name, dtype: input.dtype as DType, shape: input.shape };
    return { ...declared, ...(constant && name !== 'A' && { data: input.data }) };
  });
  const attributes = { K: k, N: n, bits, block_size: blockSize, accuracy_level: level };
  const session = await ort.createSession(
    encodeModel({
      type: 'MatMulNBits',
      domain: 'com.microsoft',
      attributes,
      inputs,
      output: { dtype: a.dtype as DType },
    }),
  );
  const feeds = inputs.flatMap((input) =>
    input && !('data' in input)
      ? [[input.name, ort.tensor(all[input.name] as never)] as const]
      : [],
  );
  const { Y } = await session.run(Object.fromEntries(feeds));
  return { data: Y.data, shape: Y.dims, dtype: Y.type as DType };
}

type Loose = (...args: unknown[]) => never;

async function expectBothNear(call: Call, constant: boolean): Promise<void> {
  const wanted = reference(call);
  const what = `${describeCall(call)}${constant ? ', constant weights' : ''}`;
  expectNear(await runOrt(call, constant), wanted, `of the runtime, ${what}`);
  expectNear((wg.matmulNBits as Loose)(...argumentsOf(call)), wanted, what);
  const weights = wg.pack(placed(call.weights) as never, { op: 'matmulNBits' });
  const packed = argumentsOf(call, {}, undefined, weights);
  expectNear((wg.matmulNBits as Loose)(...packed), wanted, `${what}, packed`);
  weights.dispose();
}

const activation = [-Infinity, Infinity] as const;

/** The runtime has 8 bits only as constants, and without zero points of the type of scales. */
const kinds = allBits.flatMap((bits) =>
  zeroKinds.flatMap((zeros) => (bits === 8 && zeros === 'typed' ? [] : [[bits, zeros] as const])),
);

it.each(kinds)(
  '%i bits, zero points %s',
  async (bits, zeros) => {
    const random = new Random(bits * 10 + zeroKinds.indexOf(zeros));
    for (const blockSize of blockSizes) {
      for (let i = 0; i < 6; ++i) {
        const rows = random.pick([[1], [2], [5], [33], [2, 3]]);
        const sizes = { rows, n: random.between(1, 70), k: random.between(1, 400) };
        const rest = { dtype: 'float32', bits, zeros, blockSize, level: 0, activation } as const;
        await expectBothNear(draw(random, { ...sizes, ...rest }), bits === 8 || i % 2 === 0);
      }
    }
  },
  60_000,
);
