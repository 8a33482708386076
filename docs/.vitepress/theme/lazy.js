// Lets Vue hydrate a component later, in a task of its own. Hydrated at once, the page would block a
// phone for a quarter of a second.
import { defineAsyncComponent, hydrateOnIdle, hydrateOnMediaQuery } from 'vue';

/** Before the page itself handles them. */
const firstUses = ['pointerdown', 'keydown', 'click'];

function hydrateOnFirstUse(hydrate) {
  for (const type of firstUses) addEventListener(type, hydrate, { capture: true });
  return () => {
    for (const type of firstUses) removeEventListener(type, hydrate, { capture: true });
  };
}

/**
 * The same component, hydrated when the visitor does something, or before, when the browser is idle.
 *
 * @param shown the media in which the component is visible: in others it waits for the visitor
 */
export const lazy = (component, shown = 'all') =>
  defineAsyncComponent({
    loader: async () => component,
    hydrate(hydrate, forEachElement) {
      const ends = [];
      const end = () => ends.splice(0).forEach((each) => each());
      const once = () => {
        end();
        hydrate();
      };
      const wait = matchMedia(shown).matches ? hydrateOnIdle() : hydrateOnMediaQuery(shown);
      ends.push(...[wait, hydrateOnFirstUse].map((each) => each(once, forEachElement)));
      return end;
    },
  });
