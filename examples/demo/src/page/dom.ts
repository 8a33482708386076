/** Finds elements that index.html has. */

/** The element in a section; an error if there is none, since index.html was then changed. */
export function find<E extends HTMLElement = HTMLElement>(within: ParentNode, query: string): E {
  const found = within.querySelector<E>(query);
  if (!found) throw new Error(`the page has no ${query}`);
  return found;
}

/** Makes an element with text, and with classes. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  text = '',
  classes = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.textContent = text;
  if (classes) made.className = classes;
  return made;
}
