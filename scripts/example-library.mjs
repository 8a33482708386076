// Loaded by Node before an example: its `wgemm` is the library that scripts/example.mjs has made.
import { registerHooks } from 'node:module';

const { href } = new URL('../build/example-library/index.js', import.meta.url);

registerHooks({
  resolve: (name, context, next) =>
    name === 'wgemm' ? { url: href, shortCircuit: true } : next(name, context),
});
