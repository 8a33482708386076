// A small model for visitors without an .onnx file, made at build time: a block of an encoder with
// random weights. `virtual:sample` exports its address.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encoderBlock } from '../../../tests/peers/onnx-graphs.mjs';
import { keptFolder, root } from './kept.mjs';

const name = 'virtual:sample';
const file = 'encoder-block.onnx';

function inputsKey() {
  const hash = createHash('sha256').update(readFileSync(import.meta.filename));
  for (const each of ['onnx-graphs.mjs', 'onnx-model.mjs'])
    hash.update(readFileSync(join(root, 'tests', 'peers', each)));
  return hash.digest('hex').slice(0, 16);
}

export function sample() {
  return {
    name: 'sample',
    resolveId: (id) => (id === name ? `\0${name}` : undefined),
    async load(id) {
      if (id !== `\0${name}`) return undefined;
      const folder = await keptFolder('demo-sample', inputsKey(), () => ({
        [file]: encoderBlock({ heads: 4, size: 64, hidden: 256 }),
      }));
      const path = join(folder, file).replaceAll('\\', '/');
      return `export { default } from ${JSON.stringify(`${path}?url`)};\n`;
    },
  };
}
