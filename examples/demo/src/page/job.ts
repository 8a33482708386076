/** Long jobs: a progress bar with a button that cancels. */
import { proxy } from 'comlink';
import type { Report } from '../engine/report.ts';
import { find } from './dom.ts';
import { keepFocus } from './focus.ts';

/**
 * Runs a job of the engine, and shows how far it is in the section's `.job`, which is hidden at
 * other times. While a section runs a job, it starts no other: then this returns undefined. A job
 * hides what the one before had to say, and the focus is kept where it was.
 *
 * @param label what the job does: 'Training'
 * @param body calls the engine with the report, which it gets as a proxy
 * @param onUpdate is called with each part of the result
 * @returns what `body` returns, which tells whether it was cancelled in time; undefined if it
 *   failed
 */
export async function runJob<T, U = undefined>(
  section: HTMLElement,
  label: string,
  body: (report: Report<U>) => Promise<T>,
  onUpdate: (update: U) => void = () => undefined,
): Promise<T | undefined> {
  const box = find(section, '.job');
  if (!box.hidden) return undefined;
  const giveFocusBack = keepFocus(section);
  const notice = find(section, '.notice');
  if ('ofJob' in notice.dataset) notice.hidden = true;
  const bar = document.createElement('progress');
  bar.max = 1; // without a value, it shows that nothing is known yet
  bar.setAttribute('aria-label', label);
  const name = document.createElement('span');
  name.textContent = label;
  const cancel = document.createElement('button');
  cancel.type = 'button';
  cancel.textContent = 'Cancel';
  cancel.setAttribute('aria-label', `Cancel: ${label}`);
  let isCancelled = false;
  cancel.addEventListener('click', () => {
    isCancelled = true;
    cancel.disabled = true;
  });
  box.replaceChildren(name, bar, cancel);
  box.hidden = false;
  try {
    return await body(
      proxy((fraction: number, update?: U) => {
        if (fraction > 0) bar.value = fraction;
        if (update !== undefined && !isCancelled) onUpdate(update);
        return !isCancelled;
      }),
    );
  } catch (error) {
    showProblem(section, error, true);
    return undefined;
  } finally {
    box.hidden = true;
    box.replaceChildren();
    giveFocusBack();
  }
}

/**
 * Says in a section what is not to be had, and why.
 *
 * @param isOfJob whether the next job hides it
 */
export function showProblem(section: HTMLElement, problem: unknown, isOfJob = false): void {
  const notice = find(section, '.notice');
  notice.textContent = problem instanceof Error ? problem.message : String(problem);
  notice.toggleAttribute('data-of-job', isOfJob);
  notice.hidden = false;
}
