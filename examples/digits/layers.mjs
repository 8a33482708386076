// The trained network as layers, which run but do not learn. Each holds its weights and bias, and
// an int8 layer its scales and zero points, too.
import { quantize } from 'wgemm';
import { createLinear } from 'wgemm/linear';
import { pixels } from './images.mjs';
import { allocOutputs, forward, multiplyBy } from './network.mjs';

/**
 * The network in three forms. Outputs for `images`, some of the training, determine the ranges of
 * int8.
 */
export function makeForms(wg, trained, images) {
  const sample = wg.alloc('float32', [images.length / pixels, pixels]);
  sample.data.set(images);
  const outputs = allocOutputs(wg, trained, sample.shape[0]);
  try {
    forward(trained, sample, outputs, multiplyBy(wg));
    return {
      float32: makeLayers(wg, trained, 'float32'),
      bfloat16: makeLayers(wg, trained, 'bfloat16'),
      int8: makeInt8Layers(wg, trained, outputs),
    };
  } finally {
    for (const tensor of [sample, ...outputs]) tensor.dispose();
  }
}

/** The layers with weights of type `as`: float32, bfloat16 or float16. */
export function makeLayers(wg, trained, as) {
  return trained.map(({ weights, bias }, i) =>
    createLinear(wg, { weights, bias, as, activation: activationOf(trained, i) }),
  );
}

/**
 * The layers in 8 bits. `outputs` holds what each layer returned for some images: it determines the
 * ranges of activations. A layer returns what the next one takes; the scores stay float32.
 */
export function makeInt8Layers(wg, trained, outputs) {
  let input = { scale: 1 / 255 }; // pixels are from 0 to 1
  return trained.map(({ weights, bias }, i) => {
    const activation = activationOf(trained, i);
    const output = activation && quantize(outputs[i]);
    const layer = createLinear(wg, { weights, bias, as: 'int8', activation, input, output });
    input = output;
    return layer;
  });
}

/**
 * The layers in 8 bits without a sample: each call quantizes its x, by the range of this x. A layer
 * adds its bias in float32 and returns float32.
 */
// #region dynamic
export function makeDynamicLayers(wg, trained) {
  return trained.map(({ weights, bias }, i) => {
    const { scale, ...b } = quantize(weights, { symmetric: true, axis: 1 }); // a scale per column
    const packed = wg.pack(b, { op: 'qgemm' });
    const vectors = { bScale: copyVector(wg, scale), bias: copyVector(wg, bias.data) };
    const options = { ...vectors, activation: activationOf(trained, i) };
    const [inputs, outputs] = packed.shape;
    return {
      inputs,
      outputs,
      returns: 'float32',
      byteLength: packed.byteLength + vectors.bScale.data.byteLength + vectors.bias.data.byteLength,
      run: (x, { out }) => wg.dynamicQuantizeMatmul(x, packed, { ...options, out }),
    };
  });
}
// #endregion

function copyVector(wg, elements) {
  const copy = wg.alloc('float32', [elements.length]);
  copy.data.set(elements);
  return copy;
}

const activationOf = (layers, i) => (i < layers.length - 1 ? 'relu' : undefined);

/**
 * A function that runs the layers over an input of `rows` images. It allocates nothing. Its
 * dispose() frees the outputs.
 */
export function runner(wg, layers, rows) {
  const outputs = layers.map(({ dtype, outputs, returns }, i) => {
    const isHidden8Bit = dtype === 'int8' && i < layers.length - 1;
    return wg.alloc(returns ?? (isHidden8Bit ? 'uint8' : 'float32'), [rows, outputs]);
  });
  const run = (input) => layers.reduce((x, layer, i) => layer.run(x, { out: outputs[i] }), input);
  run.dispose = () => outputs.forEach((tensor) => tensor.dispose());
  return run;
}
