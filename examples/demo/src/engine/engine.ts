/** Everything that the page asks of the engine. It runs in a worker if there are workers. */
import * as attention from './attention.ts';
import * as bits from './bits.ts';
import * as digit from './digit.ts';
import * as find from './find.ts';
import * as llm from './llm.ts';
import * as meter from './meter.ts';
import * as models from './models.ts';
import * as peers from './peers.ts';
import * as size from './size.ts';

export const engine = {
  ...meter,
  ...peers,
  ...size,
  ...digit,
  ...find,
  ...attention,
  ...llm,
  ...models,
  ...bits,
};
export type EngineMethods = typeof engine;
