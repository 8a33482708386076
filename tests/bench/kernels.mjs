// npm run bench -- --kernels: times every micro-kernel of the table next to the others of its type,
// in Node and in browsers, and checks that the table prefers the fastest.
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { findBrowser, variableOf } from '../../scripts/browsers.mjs';
import { fail, root } from '../../scripts/run.mjs';
import { engineNames as browsers, openIn, titleOf, versionOf } from '../browser/engines.mjs';
import { isolation, startServer, strictPolicy } from '../browser/server.mjs';
import { buildPrograms, builds, checkBuild } from './build-programs.mjs';
import { loadProgram } from './program.mjs';
import { raceKernels } from './race.mjs';

const engines = ['node', ...browsers];
const timeout = 300; // seconds, for a machine that is slow or busy

// A kernel that is faster by this factor is worth a change of the table. Runs on a quiet machine
// differ by 1 to 2%, and by more if memory is the limit.
const margin = 1.05;
// The best timing counts if the best tenth of all is within this factor of it.
const quiet = 1.06;

/**
 * @param options `engine`: names with commas between; absent: Node and all browsers that are here
 *   `build`: 'relaxed' or 'simd128'; absent: as createGemm chooses
 *   `filter`: text that the names of products must contain, such as 'float32'
 */
export async function rankKernels({ engine, build, filter }) {
  if (build !== undefined) checkBuild(build);
  const asked = engine?.split(',') ?? engines;
  const unknown = asked.find((name) => !engines.includes(name));
  if (unknown !== undefined)
    fail(`bench: there is no engine '${unknown}'; there are ${engines.join(', ')}`);
  const missing = asked.filter((name) => name !== 'node' && !findBrowser(name));
  if (engine && missing.length > 0) {
    fail(
      'bench: not here: ' +
        missing
          .map(
            (name) => `${titleOf(name)} (install it, or name its program in ${variableOf(name)})`,
          )
          .join(', '),
    );
  }

  const wanted = build ? [build] : builds;
  await buildPrograms(wanted);
  console.log(
    'Kernels alone, on operands in their panels; M x N x K; GOP/s counts 2*M*N*K; ratios ' +
      'compare the best times.',
  );
  if (missing.length > 0)
    console.log(`Not found here, and left out: ${missing.map(titleOf).join(', ')}.`);

  for (const name of asked.filter((each) => !missing.includes(each))) {
    const title =
      name === 'node'
        ? `Node ${process.versions.node}`
        : `${titleOf(name)} ${await versionOf(name)}`;
    console.log(`\n${title}${filter ? '' : ', some 40 seconds'} ...`);
    const result = await (
      name === 'node' ? inNode(wanted, filter) : inBrowser(name, wanted, filter)
    ).catch(({ message }) => ({
      crash: message,
    }));
    if (result.crash || !result.build) {
      console.error(
        `wgemm: ${title}: ${result.crash ?? `it does not take the build ${wanted.join(' nor ')}`}`,
      );
      process.exitCode = 1; // and the others may do better
      continue;
    }
    if (result.products.length === 0)
      fail(`bench: no product's name contains "${filter}"; one is float32 120x256x512`);
    print(title, result);
  }
}

async function inNode(wanted, filter) {
  for (const build of wanted) {
    const program = await loadProgram(build);
    if (program) return { build, ...(await raceKernels({ ...program, filter })) };
  }
  return {};
}

/** In an isolated page, whose clock is finer. */
async function inBrowser(name, wanted, filter) {
  const server = await startServer({
    folders: {
      '/page/': join(root, 'tests', 'browser', 'page'),
      '/bench/': import.meta.dirname,
      '/build/': join(root, 'build'),
    },
    files: {
      '/':
        '<!doctype html><title>kernels</title><script type="module" ' +
        'src="/page/kernels.js"></script>',
    },
    headers: { ...strictPolicy, ...isolation },
  });
  try {
    return await openIn(
      name,
      server.url(`/?${new URLSearchParams({ builds: wanted.join(), filter })}`),
      { timeout },
    );
  } finally {
    await server.close();
  }
}

/**
 * Which rows of the table may be chosen for which problems. The first of them is chosen, as by
 * select_kernel() of src/plan.
 */
const choices = [
  { label: 'chosen', mode: '', allows: ({ exactFor }) => exactFor === 'anything' },
  {
    label: 'chosen when strict',
    mode: 'in strict mode ',
    allows: ({ strict, exactFor }) => strict && exactFor === 'anything',
  },
  {
    label: 'chosen for packed B of 7 bits',
    mode: 'for packed B of 7 bits ',
    allows: ({ exactFor }) => exactFor !== 'nothing',
  },
];

function print(title, { build, processor, kernels, products }) {
  const load = loadavg()[0]; // 0 on Windows
  const busy =
    load > 2
      ? `; the machine does more than this (load ${load.toFixed(1)} on ` +
        `${availableParallelism()} cores)`
      : '';
  console.log(`${title}, build ${build}, processor ${processor}${busy}`);
  const width = Math.max(...kernels.map(({ name }) => name.length)) + 2;
  for (const { name, m, n, k, times } of products) {
    const speed = (ms) => ((2 * m * n * k) / ms / 1e6).toFixed(1).padStart(8);
    const entrants = times.map(({ kernel, ...time }) => ({ ...kernels[kernel], ...time }));
    const isFor = (kernel) => kernel.mMax >= m && kernel.typeOfB === kernel.type;
    const isMadeFor = (kernel) =>
      kernel.processor === processor || (kernel.processor === 'any' && kernel.vectors === 16);
    const fitting = entrants.filter((kernel) => isMadeFor(kernel) && isFor(kernel));
    const chosen = choices.map((choice) => ({ ...choice, kernel: fitting.find(choice.allows) }));
    const [{ kernel: first }] = chosen;
    console.log(`\n  ${name.padEnd(width)}    best  median   of the table's choice`);
    for (const kernel of entrants.toSorted((a, b) => a.best - b.best)) {
      const notes = chosen
        .filter((choice) => choice.kernel === kernel)
        .map(({ label }) => label)
        .slice(0, 1);
      if (![processor, 'any'].includes(kernel.processor)) notes.push(`for ${kernel.processor}`);
      if (kernel.vectors === 32) notes.push('for joined vectors');
      if (!isFor(kernel))
        notes.push(
          kernel.typeOfB === kernel.type
            ? `for ${kernel.mMax} rows at the most`
            : `for ${kernel.typeOfB}`,
        );
      if (kernel.exactFor === 'nothing') notes.push('not exact on this engine');
      const ratio = `${(first.best / kernel.best).toFixed(2)}x`.padStart(8);
      console.log(
        `  ${kernel.name.padEnd(width)}${speed(kernel.best)}${speed(kernel.median)}${ratio}  ` +
          ` ${notes.join(', ')}`.trimEnd(),
      );
    }
    for (const [i, choice] of chosen.entries()) {
      if (i > 0 && choice.kernel === first) continue; // said already
      console.log(
        `  ${verdict(
          choice,
          entrants.filter((kernel) => isFor(kernel) && choice.allows(kernel)),
        )}`,
      );
    }
  }
}

/**
 * The fastest may be a kernel that the table has for another processor. The best times count if
 * many others come near. On a busy machine short timings have many such, while medians show only
 * the load.
 */
function verdict({ kernel: preferred, mode }, others) {
  const start = `${mode}the table prefers ${preferred.name}`;
  const lead = (time) => {
    const fastest = others.reduce((a, b) => (b[time] < a[time] ? b : a));
    return { fastest, ahead: preferred[time] / fastest[time] };
  };
  const { fastest, ahead } = lead('best');
  const isFaster = ahead > margin;
  const noise = Math.max(...[preferred, fastest].map(({ best, tenth }) => tenth / best));
  const found = isFaster ? `${fastest.name} is ${percent(ahead)}% faster here` : 'none is faster';
  if (noise > quiet || lead('tenth').ahead > margin !== isFaster) {
    return (
      `unclear: ${start}; ${found} by the best time, but the best tenth varies by ` +
      `${percent(noise)}%`
    );
  }
  return isFaster ? `NOT THE FASTEST: ${start}, but ${found}` : `ok: ${start}, and ${found}`;
}

const percent = (ratio) => ((ratio - 1) * 100).toFixed(0);
