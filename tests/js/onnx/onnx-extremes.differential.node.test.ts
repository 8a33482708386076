/**
 * Operators of models, on inputs with extreme elements, next to ONNX Runtime Web: NaN, infinity, -0,
 * subnormal numbers, and the ends of integers.
 */
import { expect, it } from 'vitest';
import { draws } from './onnx-draws.js';
import { type Input, runInOrt, runNode, valuesOf } from './onnx-nodes.js';
import { Random } from '../support/random.js';
import { ort, wg } from '../support/with-ort.js';

/** Operators with results of their own for such elements. The guide describes these. */
const own = new Set(
  [
    'Clip Cast CastLike Sin Cos Mod Div OneHot Range TopK ArgMax ArgMin CumSum',
    'LayerNormalization InstanceNormalization MeanVarianceNormalization BatchNormalization',
    'RMSNormalization SimplifiedLayerNormalization QuantizeLinear DynamicQuantizeLinear',
    'QLinearMatMul LogSoftmax Attention ScatterElements ScatterND',
  ].flatMap((line) => line.split(' ')),
);
/** Operators that fold many elements: they lose other parts of a sum that is not finite. */
const folds = /^Reduce|^com\.microsoft\.(\w*Attention|Fused|Skip|Embed)|^ai\.onnx\.ml\./;
const keys = Object.keys(draws).filter((key) => !own.has(key) && !folds.test(key));

const microsoft = 'com.microsoft';
const large = Math.fround(3.4e38);
const small = 2 ** -140;
const floats = [NaN, Infinity, -Infinity, -0, 0, 1, -1, 0.5, -2.5, large, -large, small, -small];
const ends: Record<string, readonly (number | bigint)[]> = {
  float32: floats,
  float64: floats,
  int32: [-(2 ** 31), 2 ** 31 - 1, 0, -1, 1],
  int64: [-(2n ** 63n), 2n ** 63n - 1n, 0n, -1n, 1n, 2n ** 53n + 1n],
  int8: [-128, 127, 0],
  uint8: [0, 255],
};
/** Operators whose integers are elements, not indices or sizes. */
const numeric = new Set(
  (
    'Relu Neg Abs Sign Add Sub Mul Min Max Equal Less Greater LessOrEqual GreaterOrEqual Where ' +
    'PRelu NonZero DequantizeLinear'
  ).split(' '),
);

function spoil(random: Random, op: string, inputs: readonly (Input | null)[]): void {
  const rate = random.pick([0.05, 0.3, 0.6]);
  for (const input of inputs) {
    const list = ends[input?.dtype ?? ''];
    if (!input || !list || !(input.dtype.includes('float') || numeric.has(op))) continue;
    const data = input.data as Float32Array;
    for (let i = 0; i < data.length; ++i)
      if (random.next() < rate) data[i] = random.pick(list) as number;
  }
}

const digits: Record<string, number> = { float32: 23, float64: 52 };

/** Whether elements agree: NaN and infinity do with themselves, and 0 with -0. */
function agree(a: unknown, b: unknown, places: number, ulps: number, absolute: number): boolean {
  if (a === b || Object.is(a, b)) return true;
  if (typeof a !== 'number' || typeof b !== 'number') return false;
  if (!Number.isFinite(a) || !Number.isFinite(b)) return false;
  const unit = 2 ** (Math.floor(Math.log2(Math.max(Math.abs(b), 2 ** -126))) - places);
  return Math.abs(a - b) <= ulps * unit + absolute * 2 ** (23 - places);
}

it.each(keys)('%s', async (key) => {
  const [draw, ulps = 0, absolute = 0] = draws[key] as (typeof draws)[string];
  const random = new Random(Object.keys(draws).indexOf(key) + 777);
  let compared = 0;
  for (let i = 0; i < 200 && compared < 40; ++i) {
    const [domain = '', op = key] = key.includes('.') ? [microsoft, key.slice(14)] : [];
    const node = { op, domain, ...draw(random) };
    spoil(random, key, node.inputs);
    const found = await runNode(wg, node);
    let wanted: Input[];
    try {
      const dtypes = found.map(({ dtype }) => dtype);
      wanted = await runInOrt(ort, node, dtypes);
    } catch (error) {
      if (/NOT_IMPLEMENTED|Could not find an impl|ratio/.test(String(error))) continue;
      throw error;
    }
    ++compared;
    found.forEach((each, j) => {
      const other = wanted[j] as Input;
      expect([each.dtype, each.shape]).toEqual([other.dtype, other.shape]);
      const others = valuesOf(other);
      const places = digits[each.dtype] ?? 0;
      valuesOf(each).forEach((value, at) => {
        if (agree(value, others[at], places, ulps, absolute)) return;
        const shapes = node.inputs.map((input) => `${input?.dtype} [${input?.shape.join()}]`);
        expect.fail(`${shapes.join()}: ${value} at ${at}, and ${others[at]}`);
      });
    });
  }
  expect(compared, 'problems that the runtime has computed').toBe(40);
});
