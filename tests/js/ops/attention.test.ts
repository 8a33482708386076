/** attention: random calls against plain loops, from arrays and heap tensors, and its errors. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm, OutOfMemoryError, ShapeError } from 'wgemm';
import { createGemm as createInWorker } from 'wgemm/worker';
import { thrown } from '../support/errors.js';
import { Random } from '../support/random.js';

let wg: Gemm;
let small: Gemm;
beforeAll(async () => {
  [wg, small] = await Promise.all([
    createGemm({ models: true }),
    createGemm({ models: true, maxMemory: 3_000_000 }),
  ]);
});
afterAll(() => {
  for (const each of [wg, small]) each.dispose();
});

interface Tensor {
  data: Float32Array;
  shape: number[];
  strides?: number[];
}
const random = new Random(51);
const count = (shape: readonly number[]) => shape.reduce((all, size) => all * size, 1);
const floats = (...shape: number[]): Tensor => ({
  data: Float32Array.from({ length: count(shape) }, () => 2 * random.next() - 1),
  shape,
});
const contiguous = (shape: readonly number[]) =>
  shape.map((_, axis) => count(shape.slice(axis + 1)));
const at = ({ data, shape, strides = contiguous(shape) }: Tensor, ...place: number[]): number =>
  data[
    place.reduce((sum, index, axis) => sum + (shape[axis] === 1 ? 0 : index * strides[axis]!), 0)
  ]!;

interface Options {
  mask?: Tensor;
  lengths?: { data: Int32Array; shape: number[] };
  causal?: boolean;
  scale?: number;
  softcap?: number;
  window?: number;
}

/** In float64, of operands of rank 4. */
function exact(q: Tensor, k: Tensor, v: Tensor, options: Options): Float64Array {
  const [batch, heads, queries, size] = q.shape as [number, number, number, number];
  const [, groups, keys, width] = v.shape as [number, number, number, number];
  const { mask, lengths, causal, scale = 1 / Math.sqrt(size), softcap, window } = options;
  const y = new Float64Array(batch * heads * queries * width);
  let next = 0;
  for (let b = 0; b < batch; ++b)
    for (let h = 0; h < heads; ++h)
      for (let i = 0; i < queries; ++i) {
        const g = Math.floor((h * groups) / heads);
        const total = lengths ? lengths.data[b]! : keys;
        const end = causal ? total - queries + i + 1 : total;
        const powers = Array.from({ length: keys }, (_, j) => {
          if (j >= end || j < end - (window ?? Infinity)) return 0;
          let dot = 0;
          for (let d = 0; d < size; ++d) dot += at(q, b, h, i, d) * at(k, b, g, j, d);
          dot *= scale;
          if (softcap) dot = softcap * Math.tanh(dot / softcap);
          return Math.exp(dot + (mask ? at(mask, b, h, i, j) : 0));
        });
        const sum = powers.reduce((all, power) => all + power, 0);
        for (let e = 0; e < width; ++e)
          y[next++] =
            sum === 0 ? 0 : powers.reduce((all, p, j) => all + p * at(v, b, g, j, e), 0) / sum;
      }
  return y;
}

function expectNear(found: ArrayLike<number>, wanted: Float64Array, what: string): void {
  expect(found.length, what).toBe(wanted.length);
  for (let i = 0; i < wanted.length; ++i)
    expect(Math.abs(found[i]! - wanted[i]!), `${what} at ${i}`).toBeLessThan(1e-6);
}

it('is near float64', () => {
  for (let turn = 0; turn < 60; ++turn) {
    const [batch, groups, queries] = [
      random.pick([1, 2]),
      random.pick([1, 2]),
      random.between(1, 9),
    ];
    const heads = groups * random.pick([1, 3]);
    const [keys, size, width] = [
      random.between(queries, 40),
      random.between(1, 20),
      random.between(1, 9),
    ];
    const q = floats(batch, heads, queries, size);
    const k = floats(batch, groups, keys, size);
    const v = floats(batch, groups, keys, width);
    const lengths = {
      data: Int32Array.from({ length: batch }, () => random.between(queries, keys)),
      shape: [batch],
    };
    const options: Options = {
      ...(random.next() < 0.4 && { mask: floats(random.pick([1, batch]), 1, queries, keys) }),
      ...(random.next() < 0.3 && { lengths }),
      ...(random.next() < 0.4 && { causal: true }),
      ...(random.next() < 0.3 && { scale: 0.5 }),
      ...(random.next() < 0.3 && { softcap: 2 }),
      ...(random.next() < 0.3 && { window: 4 }),
    };
    const what = `${JSON.stringify([q.shape, v.shape])} ${Object.keys(options).join()}`;
    const wanted = exact(q, k, v, options);
    const y = wg.attention(q, k, v, options);
    expect(y.shape).toEqual([batch, heads, queries, width]);
    expectNear(y.data, wanted, what);
    const held = [q, k, v].map(({ data, shape }) => {
      const tensor = wg.alloc('float32', shape);
      tensor.data.set(data);
      return tensor;
    });
    const out = wg.alloc('float32', y.shape);
    expect(wg.attention(held[0]!, held[1]!, held[2]!, { ...options, out })).toBe(out);
    expect(out.data).toEqual(y.data);
    for (const tensor of [...held, out]) tensor.dispose();
  }
});

it('takes strides, and fewer axes', () => {
  // Heads in rows: (rows, heads, size).
  const [rows, heads, size] = [5, 3, 4];
  const inRows = () => {
    const { data } = floats(rows, heads, size);
    return { data, shape: [heads, rows, size], strides: [size, heads * size, 1] };
  };
  const [q, k, v] = [inRows(), inRows(), inRows()];
  const wide = ({ data, shape, strides }: ReturnType<typeof inRows>): Tensor => ({
    data,
    shape: [1, ...shape],
    strides: [0, ...strides],
  });
  const wanted = exact(wide(q), wide(k), wide(v), {});
  const y = wg.attention(q, k, v);
  expect(y.shape).toEqual([heads, rows, size]);
  expectNear(y.data, wanted, 'strides');
  const out = { data: new Float32Array(rows * heads * size), shape: q.shape, strides: q.strides };
  expect(wg.attention(q, k, v, { out })).toBe(out);
  for (let h = 0; h < heads; ++h)
    for (let i = 0; i < rows; ++i)
      for (let d = 0; d < size; ++d)
        expect(at(out, h, i, d)).toBe(y.data[(h * rows + i) * size + d]);
  const flat = floats(2, 3);
  expect(wg.attention(flat, flat, flat).shape).toEqual([2, 3]);
});

it('does not read keys beyond the lengths', () => {
  const [k, v] = [floats(2, 1, 8, 4), floats(2, 1, 8, 4)];
  const q = floats(2, 1, 1, 4);
  const lengths = { data: BigInt64Array.of(3n, 5n), shape: [2] };
  const before = wg.attention(q, k, v, { lengths });
  for (const { data } of [k, v])
    for (const [b, first] of [3, 5].entries()) data.fill(NaN, (b * 8 + first) * 4, (b + 1) * 32);
  expect(wg.attention(q, k, v, { lengths })).toEqual(before);
});

it('takes elements of 16 bits', () => {
  const half = (shape: number[]) => ({
    data: new Uint16Array(count(shape)).fill(0x3c00),
    shape,
    dtype: 'float16' as const,
  });
  const y = wg.attention(half([2, 4]), half([3, 4]), half([3, 5]));
  expect(y.dtype).toBe('float16');
  expect(y.shape).toEqual([2, 5]);
});

it('refuses', () => {
  const q = floats(4, 3, 8);
  const k = floats(2, 5, 8);
  const attention = (...args: unknown[]) =>
    thrown(() => (wg.attention as (...args: unknown[]) => unknown)(...args)) as Error;
  const refused = ({ name, message }: Error) => `${name}: ${message}`;
  expect(refused(attention(floats(8), k, k))).toBe(
    'ShapeError: attention: q has shape [8]; expected rank 2 to 4',
  );
  expect(refused(attention(q, floats(5, 8), k))).toBe(
    'ShapeError: attention: k has shape [5, 8]; expected [1, 5, 8]',
  );
  expect(refused(attention(q, floats(3, 5, 8), floats(3, 5, 8)))).toBe(
    'ShapeError: attention: k has 3 heads; expected a divisor of the 4 heads of q',
  );
  expect(refused(attention(q, floats(2, 5, 7), k))).toBe(
    'ShapeError: attention: k has shape [2, 5, 7]; expected [2, 5, 8]',
  );
  expect(refused(attention(q, k, floats(2, 6, 8)))).toBe(
    'ShapeError: attention: v has shape [2, 6, 8]; expected [2, 5, 8]',
  );
  expect(refused(attention(q, k, k, { mask: floats(2, 5) }))).toBe(
    'ShapeError: attention: mask has shape [2, 5]; expected one that broadcasts to [1, 4, 3, 5]',
  );
  expect(refused(attention(q, { ...k, shape: [2, 5, 8], data: new Float32Array(79) }, k))).toBe(
    'ShapeError: attention: k has 79 elements; expected 80 elements',
  );
  expect(refused(attention(q, { ...k, data: new Float64Array(80) }, k))).toBe(
    'DTypeError: attention: k has type float64; expected float32',
  );
  expect(refused(attention(q, k, k, { lengths: { data: Int32Array.of(1, 2), shape: [2] } }))).toBe(
    'ShapeError: attention: lengths has shape [2]; expected [1]',
  );
  expect(refused(attention(q, k, k, { window: 0 }))).toBe(
    'ArgumentError: attention: window is 0; it must be a whole number of at least 1, or Infinity',
  );
  const cap = '0, or a positive finite number of float32';
  for (const [options, message] of [
    [{ window: 1.5 }, 'window is 1.5; it must be a whole number of at least 1, or Infinity'],
    [{ softcap: Infinity }, `softcap is Infinity; it must be ${cap}`],
    [{ softcap: 1e-60 }, `softcap is 1e-60; it must be ${cap}`],
    [{ scale: 1e60 }, 'scale is 1e+60; it must be a finite number of float32'],
    [{ out: { data: q.data, shape: [4, 3, 8] } }, 'out overlaps q; it must not'],
  ] as const)
    expect(attention(q, k, k, options).message).toBe(`attention: ${message}`);
  const repeated = { data: new Float32Array(8), shape: [4, 3, 8], strides: [0, 0, 1] };
  expect(refused(attention(q, k, k, { out: repeated }))).toBe(
    'ShapeError: attention: out has strides [0, 0, 1]; expected a place for each element',
  );
  expect(attention(q, k, k, { masks: 1 }).message).toMatch(/the option "masks" is not known/);
  const held = wg.alloc('float32', [4, 3, 8]);
  expect(attention(held, k, k, { out: held }).message).toBe(
    'attention: out overlaps q; it must not',
  );
  held.dispose();
  const large = floats(1000, 800);
  expect(() => small.attention(large, large, k as never)).toThrow(ShapeError);
  expect(() => small.attention(large, large, large)).toThrow(OutOfMemoryError);
});

it('needs the operators of models', async () => {
  const plain = await createGemm();
  const x = floats(2, 3);
  expect(String(thrown(() => plain.attention(x, x, x)))).toBe(
    'UnsupportedError: attention: the instance lacks it; create the instance with models: true',
  );
  plain.dispose();
});

it('computes in a worker', async () => {
  const there = await createInWorker({ models: true });
  const [q, k, v] = [floats(4, 3, 8), floats(2, 5, 8), floats(2, 5, 6)];
  const wanted = wg.attention(q, k, v, { causal: true });
  const y = await there.attention(q, k, v, { causal: true });
  expect(y.shape).toEqual(wanted.shape);
  y.data.forEach((value, i) => expect(value).toBeCloseTo(wanted.data[i]!, 5));
  const held = await there.alloc('float32', [4, 3, 6]);
  expect(await there.attention(q, k, v, { out: held })).toBe(held);
  const error = await there.attention(q, k, k, { window: 0 }).catch((error: unknown) => error);
  expect(String(error)).toBe(
    'ArgumentError: attention: window is 0; it must be a whole number of at least 1, or Infinity',
  );
  const moved = await there.attention(q, k, v, { transfer: true, causal: true });
  expect(moved.data).toEqual(y.data);
  expect(q.data.length).toBe(0);
  there.dispose();
  const plain = await createInWorker();
  const x = floats(2, 3);
  const refused = await plain.attention(x, x, x).catch((error: unknown) => error);
  expect(String(refused)).toMatch(/^UnsupportedError: attention: the instance lacks it/);
  plain.dispose();
});
