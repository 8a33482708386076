// Names the machine of a run. Cloud machines hide the processor's name, so its family and model
// tell the generation.
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** Returns a name such as 'AMD EPYC, family 25, model 17, 2 cores'. */
export function processorName() {
  const { length, [0]: first } = cpus();
  return [first.model.trim(), ...generation(), `${length} ${length === 1 ? 'core' : 'cores'}`].join(
    ', ',
  );
}

function generation() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return [];
  const text = readFileSync('/proc/cpuinfo', 'utf8');
  return ['cpu family', 'model'].flatMap((name) => {
    const [, value] = new RegExp(`^${name}\\s*: (\\d+)$`, 'm').exec(text) ?? [];
    return value ? `${name.replace('cpu ', '')} ${value}` : [];
  });
}
