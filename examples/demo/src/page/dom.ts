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

/** Sets a text that changes often: in the same node, since a node per frame would be garbage. */
export function say(element: Element, text: string): void {
  const { firstChild } = element;
  if (firstChild instanceof Text) firstChild.data = text;
  else element.textContent = text;
}

/** Makes an element of a drawing, with attributes, and with text. */
export function draw<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number>,
  text = '',
): SVGElementTagNameMap[K] {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes))
    made.setAttribute(name, typeof value === 'number' ? value.toFixed(1) : value);
  if (text) made.textContent = text;
  return made;
}
