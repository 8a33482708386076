/** Products with weights of the block formats, in plain loops: docs/operators/matmul-nbits.md. */
import type { Random } from '../support/random.js';
import { drawBlocks, finiteHalf, type Parts, type ReferenceType } from './block-reference.js';

const f32 = Math.fround;

/** Rounds half to even. */
function roundEven(x: number): number {
  const low = Math.floor(x);
  if (x - low !== 0.5) return Math.round(x);
  return low % 2 === 0 ? low : low + 1;
}

/** Weights: N rows of K elements, as a file has them. */
export interface Weights {
  readonly zeroPoint: number;
  readonly k: number;
  readonly n: number;
  /** The bytes in the file. */
  readonly data: Uint8Array;
  /** In float32, [N, K]. */
  readonly values: Float32Array;
  /** By row, the blocks. */
  readonly blocks: readonly (readonly Parts[])[];
}

/** Zero points of the types without minima, by their numbers in ggml. */
const zeroPoints: Record<number, number> = { 2: 8, 6: 16, 8: 128, 11: 4, 14: 32 };

export function drawWeights(
  random: Random,
  type: ReferenceType,
  [n, k]: readonly [number, number],
  drawHalf = finiteHalf,
): Weights {
  const ofRow = k / type.elements;
  const { data, values, parts } = drawBlocks(random, type, n * ofRow, drawHalf);
  const blocks = Array.from({ length: n }, (_, j) => parts.slice(j * ofRow, (j + 1) * ofRow));
  return { zeroPoint: zeroPoints[type.number] ?? 0, k, n, data, values, blocks };
}

/** A block of a row of A: its scale, and the numbers. */
function quantized(a: Float32Array): readonly [scale: number, q: number[]] {
  let most = 0;
  for (const value of a) most = Math.max(most, Math.abs(value));
  const scale = f32(most / 127);
  const q = Array.from(a, (value) =>
    scale === 0 ? 0 : Math.min(127, Math.max(-127, roundEven(f32(value / scale)))),
  );
  return [scale, q];
}

/** Y at accuracy level 4, to the bit. */
export function level4(
  a: Float32Array,
  { k, n, blocks }: Weights,
  bias?: Float32Array,
): Float32Array {
  const m = a.length / k;
  const y = new Float32Array(m * n);
  for (let i = 0; i < m; ++i) {
    const size = k / (blocks[0]?.length ?? 1);
    const row = (blocks[0] ?? []).map((_, b) =>
      quantized(a.subarray(i * k + b * size, i * k + (b + 1) * size)),
    );
    const isFinite = a.subarray(i * k, (i + 1) * k).every(Number.isFinite);
    for (let j = 0; j < n; ++j) {
      let sum = 0;
      blocks[j]?.forEach(({ d, scales, codes, dmin = 0, minima }, b) => {
        const [scale, q] = row[b] as (typeof row)[0];
        const length = codes.length / scales.length;
        let [t, u] = [0, 0];
        scales.forEach((subScale, s) => {
          let [products, numbers] = [0, 0];
          for (let l = s * length; l < (s + 1) * length; ++l) {
            products += (q[l] as number) * (codes[l] as number);
            numbers += q[l] as number;
          }
          t += subScale * products;
          u += (minima?.[s] ?? 0) * numbers;
        });
        const product = f32(f32(t) * f32(scale * d));
        sum = f32(sum + (minima ? f32(product - f32(f32(u) * f32(scale * dmin))) : product));
      });
      y[i * n + j] = isFinite ? f32(sum + (bias?.[j] ?? 0)) : NaN;
    }
  }
  return y;
}

/** The exact Y, and how much a result at level 0 may differ from each element. */
export function level0(
  a: Float32Array,
  { zeroPoint, k, n, values, blocks }: Weights,
): { readonly exact: Float64Array; readonly bound: Float64Array } {
  const m = a.length / k;
  const [exact, bound] = [new Float64Array(m * n), new Float64Array(m * n)];
  const steps = Math.min(k + 4, 4 * Math.sqrt(k + 4)) * 2 ** -24;
  for (let j = 0; j < n; ++j) {
    // By element, |d * scale| * (|code| + 2 * zero point) + |dmin * minimum|.
    const sizes = (blocks[j] ?? []).flatMap(({ d, scales, codes, dmin = 0, minima }) =>
      codes.map((code, l) => {
        const s = Math.floor((l * scales.length) / codes.length);
        const size = Math.abs(code) + 2 * zeroPoint;
        return Math.abs(d * (scales[s] as number)) * size + Math.abs(dmin * (minima?.[s] ?? 0));
      }),
    );
    for (let i = 0; i < m; ++i) {
      let [sum, size, tiny] = [0, 0, 0];
      for (let l = 0; l < k; ++l) {
        const x = a[i * k + l] as number;
        sum += x * (values[j * k + l] as number);
        size += Math.abs(x) * (sizes[l] as number);
        tiny += 2 + Math.abs(x);
      }
      exact[i * n + j] = sum;
      bound[i * n + j] = steps * size + 2 ** -149 * tiny + Math.abs(sum) * 2 ** -24;
    }
  }
  return { exact, bound };
}
