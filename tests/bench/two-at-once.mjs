// The bound of two threads: the same product in two processes at once. Two cores that share a
// cache, memory or execution units do less than twice the work of one.
import { fork } from 'node:child_process';
import { once } from 'node:events';

/** @returns a contestant that runs each product in both processes */
export async function twoAtOnce({ own, ...problem }) {
  const [form] = own;
  const processes = [1, 2].map(() => fork(import.meta.filename, { serialization: 'advanced' }));
  const ask = (message) =>
    Promise.all(
      processes.map((each) => {
        each.send(message);
        return once(each, 'message');
      }),
    );
  await ask({ problem, form });
  return {
    name: 'two at once',
    kind: 'bound',
    operations: 4 * problem.m * problem.n * problem.k,
    run: (times) => ask({ times }),
    dispose: () => processes.forEach((each) => each.kill()),
  };
}

if (process.argv[1] === import.meta.filename) {
  let run;
  process.on('message', async ({ problem, form, times }) => {
    if (run) run(times);
    else run = await start(problem, form);
    process.send('done');
  });
}

async function start(problem, form) {
  const { createGemm } = await import('wgemm');
  const { ownOn } = await import('./contestants.mjs');
  return ownOn(await createGemm({ threads: 1 }), problem, form).run;
}
