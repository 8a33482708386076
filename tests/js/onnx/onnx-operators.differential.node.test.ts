/**
 * Operators of models, on seeded random inputs and several opsets, next to ONNX Runtime Web: bit for
 * bit if the operator is exact, and within a bound otherwise.
 */
import { expect, it } from 'vitest';
import { draws as operatorDraws } from './onnx-draws.js';
import { type Input, runInOrt, runNode, valuesOf } from './onnx-nodes.js';
import { productDraws } from './product-draws.js';
import { Random } from '../support/random.js';
import { ort, wg } from '../support/with-ort.js';

const draws = { ...operatorDraws, ...productDraws };

const digits: Record<string, number> = { float32: 23, float64: 52, float16: 10 };

function expectAlike(
  found: Input,
  wanted: Input,
  what: string,
  ulps: number,
  absolute: number,
): void {
  expect(found.dtype, what).toBe(wanted.dtype);
  expect(found.shape, what).toEqual(wanted.shape);
  const [values, others] = [valuesOf(found), valuesOf(wanted)];
  const places = digits[found.dtype];
  if (places === undefined || ulps === 0) return expect(values, what).toEqual(others);
  values.forEach((value, i) => {
    const other = others[i] as number;
    if (Object.is(value, other)) return;
    const unit = 2 ** (Math.floor(Math.log2(Math.max(Math.abs(other), 2 ** -126))) - places);
    const bound = ulps * unit + absolute * 2 ** (23 - places);
    expect(
      Math.abs((value as number) - other),
      `${what}: ${value} and ${other} at ${i}`,
    ).toBeLessThanOrEqual(bound);
  });
}

it.each(Object.keys(draws))('%s', async (key) => {
  const [draw, ulps = 0, absolute = 0] = draws[key] as (typeof draws)[string];
  const [op, domain] = [key.split('.').at(-1) as string, key.split('.').slice(0, -1).join('.')];
  const random = new Random(Object.keys(draws).indexOf(key) + 320);
  let compared = 0;
  for (let i = 0; i < 200 && compared < 40; ++i) {
    const node = { op, domain, ...draw(random) };
    const shapes = node.inputs.map(
      (input) => input && `${input.dtype} [${input.shape.join(', ')}]`,
    );
    const lists = node.inputs.flatMap((input) =>
      input?.dtype === 'int64' ? [`[${valuesOf(input).slice(0, 9).join(', ')}]`] : [],
    );
    const what = `${key} ${node.opset} of ${shapes.join('; ')} ${lists.join(' ')} ${JSON.stringify(node.attributes, (_, v: unknown) => (typeof v === 'bigint' ? Number(v) : v))}`;
    const found = await runNode(wg, node).catch((error: unknown) => {
      throw new Error(`${what}: ${String(error)}`, { cause: error });
    });
    let wanted: Input[];
    try {
      wanted = await runInOrt(
        ort,
        node,
        found.map(({ dtype }) => dtype),
      );
    } catch (error) {
      const message = String(error);
      if (/NOT_IMPLEMENTED|Could not find an implementation/.test(message)) continue;
      throw new Error(`${what}: ${message}`, { cause: error });
    }
    ++compared;
    found.forEach((each, j) => expectAlike(each, wanted[j] as Input, what, ulps, absolute));
  }
  expect(compared, 'problems that the runtime has computed').toBe(40);
});
