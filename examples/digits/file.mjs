// A network in a file: for each layer its number of bytes, a uint32, and the bytes of the layer,
// which have checksums of their own.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deserializeLinear } from 'wgemm/linear';

export const file = fileURLToPath(new URL('../../build/digits/network.bin', import.meta.url));

/** Saves layers, and returns the length of the file in bytes. */
export function saveLayers(layers) {
  const pieces = layers.flatMap((layer) => {
    const bytes = layer.serialize();
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return [length, bytes];
  });
  const bytes = Buffer.concat(pieces);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes);
  return bytes.length;
}

/** The layers, ready to run. Throws a PackMismatchError if the file is not what was saved. */
export function loadLayers(wg) {
  const bytes = readFileSync(file);
  const layers = [];
  for (let at = 0; at < bytes.length;) {
    const start = at + 4;
    at = start + bytes.readUInt32LE(at);
    layers.push(deserializeLinear(wg, bytes.subarray(start, at)));
  }
  return layers;
}
