// Times the kernels here, in the first of the builds that this engine accepts, and posts the times
// to the server.
import { loadProgram } from '/bench/program.mjs';
import { raceKernels } from '/bench/race.mjs';
import { told } from './perform.js';

async function race() {
  const settings = new URLSearchParams(location.search);
  for (const build of settings.get('builds').split(',')) {
    const program = await loadProgram(build);
    if (!program) continue;
    const onProduct = (name) => fetch('/progress', { method: 'POST', body: name });
    const filter = settings.get('filter');
    return { build, ...(await raceKernels({ ...program, filter, onProduct })) };
  }
  return {}; // it accepts none of them
}

const result = await race().catch((error) => ({ crash: told(error) }));
await fetch('/result', { method: 'POST', body: JSON.stringify(result) });
