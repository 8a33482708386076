// The two ways to a page of the site: its address, and a link of another page. Each returns what
// the page says about itself.

/** ms until a page counts as dead; a busy machine takes some of them. */
const patience = 20_000;

/** Loads a page by its address, and waits until Vue has taken over all that a visitor sees. */
export async function load(tab, name) {
  await tab.goto(name);
  return tab.evaluate(async (patience) => {
    const app = document.querySelector('#app');
    const end = performance.now() + patience;
    while (app && !app.__vue_app__ && performance.now() < end)
      await new Promise((resolve) => setTimeout(resolve, 5));
    // WebKit has no requestIdleCallback: Vue waits for 1 ms there.
    const wait = globalThis.requestIdleCallback ?? ((body) => setTimeout(body, 5));
    await new Promise((resolve) => wait(resolve));
    return {
      isAlive: !app || Boolean(app.__vue_app__),
      title: document.querySelector('h1')?.innerText ?? '',
    };
  }, patience);
}

/** Follows a link to a page as a click does, without loading another document. */
export function follow(tab, name) {
  return tab.evaluate(
    async (href, patience) => {
      const old = document.querySelector('.VPContent h1');
      const link = Object.assign(document.createElement('a'), { href, textContent: 'link' });
      document.body.append(link);
      link.click();
      link.remove();
      const end = performance.now() + patience;
      while (document.querySelector('.VPContent h1') === old && performance.now() < end)
        await new Promise((resolve) => setTimeout(resolve, 5));
      return {
        isAlive: true,
        title: document.querySelector('.VPContent h1')?.innerText ?? '',
        at: location.href,
      };
    },
    tab.server.url(name),
    patience,
  );
}
