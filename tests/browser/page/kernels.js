// Times the kernels here, in the first of the builds that this engine accepts, and posts the times
// to the server.
import { raceKernels } from '/bench/race.mjs';
import { told } from './perform.js';

async function race() {
  const settings = new URLSearchParams(location.search);
  for (const build of settings.get('builds').split(',')) {
    const path = `/build/wasm-${build}/wgemm_bench_kernels`;
    const bytes = await (await fetch(`${path}.wasm`)).arrayBuffer();
    if (!WebAssembly.validate(bytes)) continue;
    const { default: factory } = await import(`${path}.mjs`);
    const compiled = await WebAssembly.compile(bytes);
    const onProduct = (name) => fetch('/progress', { method: 'POST', body: name });
    return {
      build,
      ...(await raceKernels({ factory, compiled, filter: settings.get('filter'), onProduct })),
    };
  }
  return {}; // it accepts none of them
}

const result = await race().catch((error) => ({ crash: told(error) }));
await fetch('/result', { method: 'POST', body: JSON.stringify(result) });
