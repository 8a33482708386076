/** Types of onnx-graphs.mjs, for the tests in TypeScript. */
interface Node {
  op: string;
  domain: string;
  outputs: string[];
}

/** The graph of a seed, and one of the same nodes to compare with. */
export function graphOf(seed: number): { model: { nodes: Node[] }; reference: { nodes: Node[] } };
