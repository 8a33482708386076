import { createGemm, quantizeNBits } from 'wgemm';

const wg = await createGemm();
const random = (...shape) => ({
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => Math.random() - 0.5),
  shape,
});
const weights = random(768, 3072);
const x = random(1, 768);

// A scale per block of 32 weights of a column.
const b = quantizeNBits(weights, { bits: 4, blockSize: 32, symmetric: true });
const packed = wg.pack(b, { op: 'matmulNBits' });
const y = wg.matmulNBits(x, packed, { accuracyLevel: 4 }); // quantizes x to 8 bits
console.log(weights.data.byteLength, 'bytes became', packed.byteLength, y.shape);
wg.dispose();
