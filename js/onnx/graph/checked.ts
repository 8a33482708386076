/** The nodes of a graph that is checked. */
import type { Run } from '../operators/operator.js';
import type { OnnxNode } from '../read/model.js';
import type { ProductCall } from './products.js';

/** @internal A node that is supported: an operator, a product, or an If. */
export interface CheckedNode {
  readonly node: OnnxNode;
  readonly run: Run | undefined;
  readonly product: ProductCall | undefined;
  /** The nodes that it stands for, in order. They run instead, if it refuses their operands. */
  readonly originals: readonly CheckedNode[] | undefined;
  /** For an If: what runs if the condition is true, and what runs otherwise. */
  readonly branches?: readonly CheckedBranch[] | undefined;
}

/** @internal */
export interface CheckedBranch {
  /** The nodes that the outputs need, each after those that make its inputs. */
  readonly nodes: readonly CheckedNode[];
  /** The names that become the outputs of the If. */
  readonly outputs: readonly string[];
}
