// Loaded by Node before an example: its `wgemm` is the library that scripts/example.mjs has made.
// `?models` after the name of this file means the library that can run models.
import { registerHooks } from 'node:module';

const folder = import.meta.url.endsWith('?models') ? 'example-models-library' : 'example-library';
const fileOf = (name) => new URL(`../build/${folder}/${name}.js`, import.meta.url).href;
const files = {
  wgemm: fileOf('index'),
  'wgemm/linear': fileOf('linear'),
  'wgemm/search': fileOf('search'),
  'wgemm/onnx': fileOf('onnx'),
};

registerHooks({
  resolve: (name, context, next) =>
    Object.hasOwn(files, name) ? { url: files[name], shortCircuit: true } : next(name, context),
});
