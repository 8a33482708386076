// Lets Vue hydrate a component later, in a task of its own. Hydrated at once, the page would block a
// phone for a quarter of a second.
import { defineAsyncComponent, hydrateOnIdle, hydrateOnInteraction } from 'vue';

const waits = [hydrateOnIdle(), hydrateOnInteraction('click')];

function onIdleOrClick(hydrate, forEachElement) {
  let isDone = false;
  const once = () => {
    if (!isDone) hydrate();
    isDone = true;
  };
  const ends = waits.map((wait) => wait(once, forEachElement));
  return () => ends.forEach((end) => end());
}

/** The same component, hydrated when the browser is idle, or before the first click on it. */
export const lazy = (component) =>
  defineAsyncComponent({ loader: async () => component, hydrate: onIdleOrClick });
