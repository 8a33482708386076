// Jobs of the parts of the demo: what they do now, and how tests cancel them.
import { refuse } from '../package/results.mjs';

/** Runs in the page. Returns its jobs, how far they are, and its notices. */
export function activity() {
  const said = [...document.querySelectorAll('section')].flatMap((section) => {
    const shown = [...section.querySelectorAll('.job, .notice')].filter(({ hidden }) => !hidden);
    return shown.map((element) => {
      const bar = element.querySelector('progress');
      return `${section.id}: ${element.innerText}${bar ? ` ${bar.value.toFixed(2)}` : ''}`;
    });
  });
  return said.join('; ').replace(/\s+/g, ' ') || 'No job runs.';
}

/**
 * Cancels the job of a part as soon as there is one: a pointer may find that it has ended.
 *
 * @returns ms until it ended
 */
export async function cancel(tab, part) {
  await tab.waitFor(
    `a job of ${part}`,
    (part) => {
      const button = document.querySelector(`#${part} .job button`);
      button?.click();
      return Boolean(button);
    },
    { args: [part] },
  );
  return untilJobEnds(tab, part);
}

/** Waits until a part has no job; returns how many ms that took. */
export async function untilJobEnds(tab, part) {
  const start = performance.now();
  await tab.waitFor(
    `the job of ${part} ends`,
    (part) => document.querySelector(`#${part} .job`).hidden,
    { args: [part], timeout: 90_000 },
  );
  return performance.now() - start;
}

/** Fails if a job that was cancelled ran on: then it took about as long as a whole one, in ms. */
export function expectSooner(cancelled, whole) {
  if (cancelled > 0.6 * whole)
    refuse(`it ended after ${Math.round(cancelled)} ms; a whole one takes ${Math.round(whole)} ms`);
}
