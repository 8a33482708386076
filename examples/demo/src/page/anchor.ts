/** Holds the page still under the visitor when something above the window changes its height. */
import { find } from './dom.ts';

const step = 8; // CSS pixels between the points that are tried

/** The uppermost element in the window that has no elements inside. */
function uppermost(): Element | undefined {
  for (let y = 0; y < innerHeight; y += step) {
    const element = document.elementFromPoint(innerWidth / 2, y);
    if (element?.childElementCount === 0) return element;
  }
  return undefined;
}

/** WebKit has no scroll anchoring. Other browsers have, so this does nothing there. */
export function keepPlace(): void {
  if (CSS.supports('overflow-anchor', 'auto')) return;
  let anchor: Element | undefined;
  let [top, scrolled] = [0, 0];
  const mark = () => {
    anchor = uppermost();
    top = anchor?.getBoundingClientRect().top ?? 0;
    scrolled = scrollY;
  };
  // Runs before the browser paints. If the visitor has scrolled since the mark, the scrolling moved
  // the anchor.
  new ResizeObserver(() => {
    if (anchor?.getClientRects().length && scrollY > 0 && scrollY === scrolled)
      scrollBy({ top: anchor.getBoundingClientRect().top - top, behavior: 'instant' });
    mark();
  }).observe(find(document, 'main'));
  addEventListener('scroll', mark, { passive: true });
}
