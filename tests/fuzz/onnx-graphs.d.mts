/** Types of onnx-graphs.mjs, for the tests in TypeScript. */
import type { DataArray } from 'wgemm';
import type { ModelSpec, NodeSpec } from '../peers/onnx-model.mjs';

interface Node extends NodeSpec {
  domain: string;
  outputs: string[];
}
type Model = ModelSpec & { nodes: Node[] };
type Feeds = Record<string, { data: DataArray; shape: readonly number[] }>;

/** The graph of a seed, and one of the same nodes to compare with. */
export function graphOf(seed: number): {
  model: Model;
  feeds: Feeds;
  reference: Model;
  referenceFeeds: Feeds;
  /** The outputs that a state keeps, and the inputs that they become. */
  keep: Record<string, string>;
};
