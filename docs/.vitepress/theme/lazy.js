// Lets Vue hydrate a component later, in its own task. If Vue hydrated all components at once, it
// would block a phone for a quarter of a second.
import { defineAsyncComponent, hydrateOnIdle, hydrateOnMediaQuery } from 'vue';

/** Events of a first use. The component is hydrated before the page handles the event. */
const firstUses = ['pointerdown', 'keydown', 'click'];

function hydrateOnFirstUse(hydrate) {
  const end = new AbortController();
  const { signal } = end;
  for (const type of firstUses) addEventListener(type, hydrate, { capture: true, signal });
  return () => end.abort();
}

/**
 * Returns the same component. Vue hydrates it when the browser is idle, or earlier, when the
 * visitor first uses the page.
 *
 * @param shown the media in which the component is visible. In other media, Vue waits for the
 *   visitor.
 */
export const lazy = (component, shown = 'all') =>
  defineAsyncComponent({
    loader: async () => component,
    hydrate(hydrate) {
      const once = () => {
        end();
        hydrate();
      };
      const wait = matchMedia(shown).matches ? hydrateOnIdle() : hydrateOnMediaQuery(shown);
      const ends = [wait(once), hydrateOnFirstUse(once)];
      const end = () => ends.forEach((each) => each());
      return end;
    },
  });
