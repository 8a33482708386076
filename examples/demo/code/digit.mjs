import { createGemm, quantize } from 'wgemm';
import { createLinear } from 'wgemm/linear';

const wg = await createGemm();
const random = (...shape) => ({
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => Math.random() - 0.5),
  shape,
});
const image = { data: random(784).data.map(Math.abs), shape: [1, 784] };
const [first, second] = [random(784, 128), random(128, 10)]; // yours are trained

// What the first layer returns for an image of the training says which range 8 bits must cover.
const hidden = createLinear(wg, { weights: first, activation: 'relu' }).run(image);
const [input, output] = [{ scale: 1 / 255 }, quantize(hidden)];
const layers = [
  createLinear(wg, { weights: first, as: 'int8', activation: 'relu', input, output }),
  createLinear(wg, { weights: second, as: 'int8', input: output }),
];
console.log(layers.reduce((x, layer) => layer.run(x), image).data); // a score per digit
wg.dispose();
