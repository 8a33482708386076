/** All operators that are not products. */
import { addElementwise } from './elementwise.js';
import { addNormalize } from './normalize.js';
import { operators } from './operator.js';
import { addQuantize } from './quantize.js';
import { addShapes } from './shapes.js';

function filled(): typeof operators {
  addElementwise();
  addNormalize();
  addQuantize();
  addShapes();
  return operators;
}

/**
 * @internal The table of operators, with all of them in it. It is not enough to import the files:
 * package.json says that imports have no effects.
 */
export const allOperators = filled();
