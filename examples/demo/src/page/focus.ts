/** Keeps the focus where it was while controls are disabled or removed. */

interface Kept {
  element?: Element | undefined;
  /** Calls that have not ended. */
  calls: number;
}

const keptIn = new WeakMap<HTMLElement, Kept>();

/**
 * Remembers which control of a section has the focus, before it is disabled. Calls may be nested,
 * or follow each other: the first control counts as long as the focus is nowhere else.
 *
 * @returns a function to call in the end: it gives the focus back if nothing has it, once the
 *   caller had the time to enable the control
 */
export function keepFocus(section: HTMLElement): () => void {
  const kept = keptIn.get(section) ?? { calls: 0 };
  keptIn.set(section, kept);
  const { activeElement } = document;
  if (hasFocus(activeElement))
    kept.element = section.contains(activeElement) ? activeElement! : undefined;
  ++kept.calls;
  return () => {
    --kept.calls;
    setTimeout(() => {
      if (kept.calls > 0) return;
      if (kept.element && !hasFocus(document.activeElement)) focus(kept.element);
      kept.element = undefined;
    });
  };
}

const hasFocus = (element: Element | null): boolean => !!element && element !== document.body;

/** Focuses a control, or the first one next to it that is enabled. */
function focus(element: Element): void {
  const siblings = element.parentElement?.querySelectorAll(':enabled') ?? [];
  for (const control of [element, ...siblings]) {
    (control as HTMLElement).focus({ preventScroll: true });
    if (document.activeElement === control) return;
  }
}
