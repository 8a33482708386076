// A network in a file: a line of JSON with the biases and the lengths of what follows it, the weights of each layer, serialized.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const file = fileURLToPath(new URL('../../build/digits/network.bin', import.meta.url));

/** Saves layers of packed weights, and returns the length of the file in bytes. */
export function saveLayers(layers) {
  const parts = layers.map(({ weights }) => weights.serialize());
  const header = layers.map(({ bias }, i) => ({ bias: [...bias.data], length: parts[i].length }));
  const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...parts]);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes);
  return bytes.length;
}

/** The layers, ready to run. Throws SyntaxError or wgemm's PackMismatchError where the file is not what was saved. */
export function loadLayers(wg) {
  const bytes = readFileSync(file);
  let start = bytes.indexOf('\n') + 1;
  return JSON.parse(bytes.toString('utf8', 0, start)).map(({ bias, length }) => {
    const weights = wg.deserialize(bytes.subarray(start, (start += length)));
    const layer = { weights, bias: wg.alloc('float32', [1, bias.length]) };
    layer.bias.data.set(bias);
    return layer;
  });
}
