/** Long jobs: a progress bar with a button that cancels. */
import { proxy } from 'comlink';
import type { Report } from '../engine/report.ts';
import { find } from './dom.ts';

/**
 * Runs a job of the engine, and shows how far it is in the section's `.job`, which is hidden at
 * other times. While a section runs a job, it starts no other: then this returns undefined.
 *
 * @param label what the job does: 'Training'
 * @param body calls the engine with the report, which it gets as a proxy
 * @param onUpdate is called with each part of the result
 * @returns what `body` returns, which tells whether it was cancelled in time; undefined if it failed
 */
export async function runJob<T, U = undefined>(
  section: HTMLElement,
  label: string,
  body: (report: Report<U>) => Promise<T>,
  onUpdate: (update: U) => void = () => undefined,
): Promise<T | undefined> {
  const box = find(section, '.job');
  if (!box.hidden) return undefined;
  const bar = document.createElement('progress');
  bar.max = 1;
  bar.value = 0;
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
        bar.value = fraction;
        if (update !== undefined && !isCancelled) onUpdate(update);
        return !isCancelled;
      }),
    );
  } catch (error) {
    showProblem(section, error);
    return undefined;
  } finally {
    box.hidden = true;
    box.replaceChildren();
  }
}

/** Says in a section what is not to be had, and why. */
export function showProblem(section: HTMLElement, problem: unknown): void {
  const notice = find(section, '.notice');
  notice.textContent = problem instanceof Error ? problem.message : String(problem);
  notice.hidden = false;
}
