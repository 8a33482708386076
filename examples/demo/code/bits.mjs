import { createGemm } from 'wgemm';

const wg = await createGemm({ determinism: 'strict', threads: 'auto' });
const matrix = (seed) => ({
  data: Float32Array.from({ length: 256 * 256 }, (_, i) => ((seed * i) % 1009) / 1009 - 0.5),
  shape: [256, 256],
});
const { data } = wg.gemm(matrix(17), matrix(31));
const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', data));
console.log(hash.reduce((text, byte) => text + byte.toString(16).padStart(2, '0'), ''));
// Everywhere: 244bc42f6dc2e189f2f6c4fe4723e8b6b2bdeea5721b8665a80e6c89cd48454d
wg.dispose();
