/**
 * Operators of models with elements of 16 bits compute as with float32, and round once. Few of them
 * have a kernel in ONNX Runtime Web.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { round, toBits } from '../support/dtypes.js';
import { Random } from '../support/random.js';
import { draws } from './onnx-draws.js';
import { type Input, runNode, valuesOf } from './onnx-nodes.js';

/** Operators that also round between their steps: the error in units of the largest result. */
const unrounded: Record<string, number> = {
  ScatterElements: 2,
  'com.microsoft.FastGelu': 2,
  'com.microsoft.FusedGemm': 2,
  'com.microsoft.BiasGelu': 2,
  'com.microsoft.SkipLayerNormalization': 4,
  'com.microsoft.SkipSimplifiedLayerNormalization': 4,
  'com.microsoft.EmbedLayerNormalization': 4,
  'com.microsoft.MultiHeadAttention': 4,
  'com.microsoft.GroupQueryAttention': 8,
  'com.microsoft.Attention': 8,
  'com.microsoft.QAttention': 8,
};
/** Operators without inputs of 16 bits. */
const none = /^(And|Or|Xor|Not|Constant|ConstantOfShape|DynamicQuantizeLinear)$/;
const keys = Object.keys(draws).filter((key) => !none.test(key));

const types = ['float16', 'bfloat16'] as const;
const isFloat = (input: Input | null): input is Input => input?.dtype === 'float32';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ models: true, determinism: 'strict' });
});
afterAll(() => wg.dispose());

it.each(keys)('%s', async (key) => {
  const [draw] = draws[key] as (typeof draws)[string];
  const cut = key.lastIndexOf('.');
  const [domain, op] = [key.slice(0, Math.max(cut, 0)), key.slice(cut + 1)];
  const random = new Random(Object.keys(draws).indexOf(key) + 99);
  for (let compared = 0; compared < 20;) {
    const node = { op, domain, ...draw(random) };
    if (!node.inputs.some(isFloat) || node.inputs.some((x) => x?.dtype === 'float64')) continue;
    ++compared;
    // Scales of quantized products have no bfloat16.
    const dtype = /^QLinear|QAtt/.test(op) ? 'float16' : random.pick(types);
    const withFloats = (change: (input: Input, values: readonly number[]) => Input) =>
      node.inputs.map((x) => (isFloat(x) ? change(x, valuesOf(x) as number[]) : x));
    const rounded = withFloats((x, values) => ({
      ...x,
      data: Float32Array.from(values, (value) => round(dtype, value)),
    }));
    const halves = withFloats((x, values) => ({
      ...x,
      dtype,
      data: Uint16Array.from(values, (value) => toBits(dtype, value)),
    }));
    const found = await runNode(wg, { ...node, inputs: halves });
    const wanted = await runNode(wg, { ...node, inputs: rounded });
    found.forEach((each, j) => {
      const values = valuesOf(each);
      const all = valuesOf(wanted[j] as Input);
      if (each.dtype !== dtype) return expect(values).toEqual(all);
      const others = (all as number[]).map((value) => round(dtype, value));
      const most = Math.max(...others.map(Math.abs).filter(Number.isFinite), 2 ** -6);
      const bound = (unrounded[key] ?? 0) * most * 2 ** (dtype === 'float16' ? -10 : -7);
      values.forEach((value, at) => {
        const other = others[at] as number;
        if (value === other || Object.is(value, other)) return;
        expect(Math.abs((value as number) - other), key).toBeLessThanOrEqual(bound);
      });
    });
  }
});
