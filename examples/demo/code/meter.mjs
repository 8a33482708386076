import { createGemm } from 'wgemm';

const wg = await createGemm({ threads: 'auto' });
// Tensors in the memory of wgemm: a call on them copies and allocates nothing.
const [a, b, out] = ['a', 'b', 'out'].map(() => wg.alloc('float32', [512, 512]));
for (const { data } of [a, b]) data.forEach((_, i) => (data[i] = Math.random()));

for (let calls = 1; calls <= 64; calls *= 2) {
  const start = performance.now();
  for (let i = 0; i < calls; ++i) wg.gemm(a, b, null, { out });
  const perCall = (performance.now() - start) / calls;
  console.log(((2 * 512 ** 3) / perCall / 1e6).toFixed(1), 'GOP/s');
}
wg.dispose();
