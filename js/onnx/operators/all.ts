/** All operators that are not products. */
import type { OnnxNode } from '../read/model.js';
import { activations } from './activations.js';
import { transformers } from './attention.js';
import { comparisons } from './comparisons.js';
import { define, type Row } from './define.js';
import { elementwise } from './elementwise.js';
import { indices } from './indices.js';
import { normalization } from './normalize.js';
import { keyOf, type Operator } from './operator.js';
import { quantization } from './quantize.js';
import { reductions } from './reduce.js';
import { shapes } from './shapes.js';
import { statistics } from './statistics.js';

/** @internal */
export const rows: readonly Row[] = [
  elementwise,
  activations,
  comparisons,
  normalization,
  statistics,
  quantization,
  reductions,
  shapes,
  indices,
  transformers,
].flat();

/** @internal By `keyOf`. */
export const allOperators: ReadonlyMap<string, Operator> = new Map(rows.map(define));

/** @internal The operator of a node; undefined if it is a product. */
export const operatorOf = (node: OnnxNode): Operator | undefined => allOperators.get(keyOf(node));

/** @internal Whether a fusion may take the result of a node if other nodes do, too. */
export const isShared = (node: OnnxNode): boolean => !!operatorOf(node)?.isShared;
