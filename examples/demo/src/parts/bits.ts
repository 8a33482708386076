import type { Engine } from '../page/connect.ts';

export function start(_section: HTMLElement, _engine: Engine): void {
  // to be written
}
