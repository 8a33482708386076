// The trained network in 8 bits: int8 weights with a scale for each neuron, and uint8 activations.
// Every product is a wg.qgemm.
import { quantize, quantizeBias } from 'wgemm';

/**
 * Quantizes trained layers. `outputs` holds what each layer returned for some images: it determines
 * the ranges of activations. The input's pixels are from 0 to 1, and a ReLU returns nothing
 * negative, so every zero point of activations is 0.
 */
export function quantizeLayers(wg, layers, outputs) {
  let aScale = 1 / 255;
  return layers.map(({ weights, bias }, i) => {
    const quantized = quantize(weights, { symmetric: true, axis: 1 });
    const layer = {
      aScale,
      weights: wg.pack(quantized, { op: 'qgemm' }),
      bScale: quantized.scale,
      bias: quantizeBias(bias, { aScale, bScale: quantized.scale }),
      yScale: undefined, // the last layer's scores stay float32
    };
    if (i < layers.length - 1) layer.yScale = quantize(outputs[i]).scale;
    aScale = layer.yScale;
    return layer;
  });
}

/** Pixels from 0 to 1 as uint8, in the instance's memory. */
export function quantizeImages(wg, { data, shape }) {
  const out = wg.alloc('uint8', shape);
  quantize({ data, shape }, { scale: 1 / 255, out });
  return out;
}

/** Tensors for the outputs of each quantized layer for `rows` images. */
export function allocQuantizedOutputs(wg, layers, rows) {
  return layers.map(({ weights, yScale }) =>
    wg.alloc(yScale === undefined ? 'float32' : 'uint8', [rows, weights.shape[1]]),
  );
}

/** The forward pass. With a zero point of 0, saturating to uint8 is the ReLU. */
export function forwardQuantized(wg, layers, input, outputs) {
  let a = input;
  layers.forEach(({ aScale, weights, bScale, bias, yScale }, i) => {
    const quantizesY = yScale !== undefined;
    wg.qgemm(
      { a, aScale, b: weights, bScale, c: bias, yScale, yZeroPoint: quantizesY ? 0 : undefined },
      { out: outputs[i] },
    );
    a = outputs[i];
  });
  return a;
}
