// Loaded by Node before an example: its `wgemm` is the library that scripts/example.mjs has made.
import { registerHooks } from 'node:module';

const fileOf = (name) => new URL(`../build/example-library/${name}.js`, import.meta.url).href;
const files = { wgemm: fileOf('index'), 'wgemm/linear': fileOf('linear') };

registerHooks({
  resolve: (name, context, next) =>
    Object.hasOwn(files, name) ? { url: files[name], shortCircuit: true } : next(name, context),
});
