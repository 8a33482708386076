/** Memory while a tensor of 100 MB flows into packed form. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { packFrom } from 'wgemm/weights';

let wg: Gemm;
beforeEach(async () => {
  wg = await createGemm();
});
afterEach(() => {
  wg.dispose();
});

const k = 4096;
/** By type: bytes of a row in a file, and rows of about 100 MB. */
const types = { Q4_K: [(k / 256) * 144, 45_000], F32: [4 * k, 6336] } as const;

/** Bytes that live: the memory of the instance, and arrays. */
function live(): number {
  for (let i = 0; i < 2; ++i) globalThis.gc?.(); // the second one waits until the first has freed
  return wg.memory().committed + process.memoryUsage().arrayBuffers;
}

it.each(
  Object.keys(types).flatMap((type) =>
    ['a function', 'a stream'].map((source) => [type as keyof typeof types, source] as const),
  ),
)('%s from %s takes at most 1.1 times the packed bytes', async (type, kind) => {
  const [rowBytes, n] = types[type];
  const total = n * rowBytes;
  const before = live();
  let peak = before;
  let calls = 0;
  const part = (length: number) => {
    if (++calls % 30 === 0) peak = Math.max(peak, live()); // collecting takes long
    return new Uint8Array(length);
  };
  let at = 0;
  const stream = () =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        const length = Math.min(total - at, 2 ** 18);
        if (length === 0) return controller.close();
        controller.enqueue(part(length));
        at += length;
      },
    });
  const source = kind === 'a stream' ? stream() : (_: number, length: number) => part(length);
  const packed = await packFrom(wg, source, { type, shape: [n, k] });
  peak = Math.max(peak, live());
  expect(total).toBeGreaterThan(100e6);
  const ratio = (peak - before) / packed.byteLength;
  expect(ratio, 'times the packed bytes').toBeLessThan(1.1);
  expect(ratio).toBeGreaterThan(0.99);
  packed.dispose();
});
