/** Embeddings: a model that the visitor gives finds the texts that are nearest to a text. */
import type { Engine } from '../page/connect.ts';
import { find } from '../page/dom.ts';

export function start(section: HTMLElement, engine: Engine): void {
  const input = find<HTMLInputElement>(section, '#embed-folder');
  // The rest is fetched when there is a model.
  input.addEventListener('change', () => {
    const files = [...(input.files ?? [])];
    if (files.length > 0)
      void import('./embed-search.ts').then(({ take }) => take(section, engine, files));
  });
}
