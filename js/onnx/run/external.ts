/** Weights that are packed while they are read, so that they never lie in memory twice. */
import type { InstanceLink } from '../../api/worker-handles.js';
import type { DType } from '../../base/tensor.js';
import { operandOf } from '../../call/operand.js';
import type { Core } from '../../instance/core.js';
import { packRows, type WeightsPart } from '../../weights/parts.js';
import { type CheckedGraph, withBranches } from '../graph/graph.js';
import type { ProductWeights } from '../graph/products.js';
import type { OnnxNode, OnnxTensor } from '../read/model.js';
import type { LeftData } from '../read/read.js';
import { elementsIn } from '../read/tensors.js';
import { errorIn } from './errors.js';

/** How a constant is packed. */
interface Packable {
  readonly name: string;
  readonly trans: boolean;
  /** A node that takes it, for errors. */
  readonly node: OnnxNode;
}

/** @internal The weights that were packed, by the name of the constant. */
export type Prepacked = ReadonlyMap<string, ProductWeights>;

/**
 * @internal The constants that only products of floats take, all as the same B. Nothing reads their
 * elements but `pack`.
 */
export function findPackable({
  nodes,
  constants,
  outputs,
}: CheckedGraph): Map<OnnxTensor, Packable> {
  const all = withBranches(nodes);
  const found = new Map<string, Packable>();
  const others = new Set(outputs.map(({ name }) => name));
  // The weights of a Gemm before a BatchNormalization are computed: graph/channels.ts.
  const normalized = new Set(
    all.flatMap(({ node }) => (node.op === 'BatchNormalization' ? node.inputs.slice(0, 1) : [])),
  );
  for (const { node, product, branches } of all) {
    for (const { outputs } of branches ?? []) for (const name of outputs) others.add(name);
    // The branches of an If take its other inputs.
    const inputs = branches ? node.inputs.slice(0, 1) : node.inputs;
    const isFloat = product?.name === 'gemm' || product?.name === 'matmul';
    const [, options] = isFloat
      ? (product.pack(inputs.map((each) => constants.get(each))) ?? [])
      : [];
    const { trans = false } = (options ?? {}) as { trans?: boolean };
    inputs.forEach((name, i) => {
      const tensor = constants.get(name);
      if (!tensor) return;
      const fits =
        options &&
        i === product?.b &&
        tensor.shape.length === 2 &&
        /^b?float/.test(tensor.dtype) &&
        !normalized.has(node.outputs[0] as string) &&
        (found.get(name)?.trans ?? trans) === trans;
      if (!fits) others.add(name);
      found.set(name, { name, trans, node });
    });
  }
  for (const name of others) found.delete(name);
  return new Map(
    Array.from(found.values(), (each) => [constants.get(each.name) as OnnxTensor, each]),
  );
}

/**
 * @internal Packs weights while it reads them.
 * @param instance where the weights are
 * @param tell receives how many bytes are packed
 */
export async function packExternal(
  instance: Core | InstanceLink,
  packable: ReadonlyMap<OnnxTensor, Packable>,
  left: readonly LeftData[],
  tell: (bytes: number) => void | Promise<void>,
): Promise<Prepacked> {
  const op = 'loadModel';
  const packed = new Map<string, ProductWeights>();
  let done = 0;
  try {
    for (const { tensor, source, offset, length } of left) {
      const { name, trans, node } = packable.get(tensor) as Packable;
      const { dtype, shape } = tensor;
      const [rows, cols] = shape as [number, number];
      const [k, n] = trans ? [cols, rows] : [rows, cols];
      const weights = { type: dtype as DType, k, n };
      const info = { shape, offset, byteLength: length };
      const partOf = (first: number, bytes: Uint8Array): WeightsPart => {
        const count = bytes.length / (length / rows); // whole numbers, so that the result is exact
        const data = elementsIn(dtype, bytes, count * cols, length / rows / cols);
        const part = operandOf('B', instance.dtypes.indexOf(dtype as DType), [count, cols], data);
        const [row, col] = trans ? [0, first] : [first, 0];
        return [{ trans: Number(trans), row, col }, part];
      };
      // Parts have whole panels of columns.
      const step = trans ? 8 : 1;
      const each = (row: number) => tell(done + (row / rows) * length);
      try {
        packed.set(
          name,
          await packRows(op, instance, { weights, source, info, step, partOf, tell: each }),
        );
      } catch (error) {
        throw errorIn(op, node, error);
      }
      done += length;
    }
    return packed;
  } catch (error) {
    disposeAll(packed);
    throw error;
  }
}

/** @internal Frees weights that no model has taken. */
export function disposeAll(packed: Prepacked): void {
  for (const weights of packed.values()) weights.dispose();
}
