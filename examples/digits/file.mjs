// A network in a file: a checksum of the next line; a line of JSON with the biases and the lengths
// of the weights; and the serialized weights of each layer, which have their own checksum.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const file = fileURLToPath(new URL('../../build/digits/network.bin', import.meta.url));

/** The file is not what was saved. */
export class ChangedError extends Error {}

const sumOf = (line) => createHash('sha256').update(line).digest('hex');

/** Saves layers of packed weights, and returns the length of the file in bytes. */
export function saveLayers(layers) {
  const parts = layers.map(({ weights }) => weights.serialize());
  const header = JSON.stringify(
    layers.map(({ bias }, i) => ({ bias: [...bias.data], length: parts[i].length })),
  );
  const bytes = Buffer.concat([Buffer.from(`${sumOf(header)}\n${header}\n`), ...parts]);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes);
  return bytes.length;
}

/**
 * The layers, ready to run. Throws ChangedError or wgemm's PackMismatchError if the file is not
 * what was saved.
 */
export function loadLayers(wg) {
  const bytes = readFileSync(file);
  const [sum, header] = bytes.toString('latin1').split('\n', 2);
  if (header === undefined || sum !== sumOf(header))
    throw new ChangedError('Its biases have another checksum.');
  let start = sum.length + header.length + 2;
  return JSON.parse(header).map(({ bias, length }) => {
    const weights = wg.deserialize(bytes.subarray(start, (start += length)));
    const layer = { weights, bias: wg.alloc('float32', [1, bias.length]) };
    layer.bias.data.set(bias);
    return layer;
  });
}
