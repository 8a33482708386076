/**
 * Packed weights of the tensors that products have as `b` again and again. TensorFlow.js does not
 * change the data of a tensor: a variable with another value has another `dataId`. So packed
 * weights stay right until the backend disposes of the data.
 */
import type { Gemm } from '../api/create-gemm.js';
import { OutOfMemoryError } from '../base/errors.js';
import type { PackedWeights } from '../instance/heap.js';

/** @internal A backend of TensorFlow.js, as far as the weights need it. */
export interface DataOwner {
  /** Returns false if other tensors still have the data. */
  disposeData: (dataId: object, force?: boolean) => boolean;
}

/** A product's view of a tensor: the same data may be a matrix of other sizes, or transposed. */
interface WeightMatrix {
  readonly rows: number;
  readonly columns: number;
  readonly trans: boolean;
  /** null: not packed so far, or there was no room. */
  packed: PackedWeights | null;
  /** Whether to pack it when it is seen again. */
  isWanted: boolean;
}

/** @internal */
export interface KeptWeights {
  /**
   * The packed weights of a matrix, if it was seen before.
   *
   * @param rows the rows of the matrix as it is stored, as `columns`
   * @param data is called if the weights must be packed
   */
  find(
    backend: DataOwner,
    dataId: object,
    rows: number,
    columns: number,
    trans: boolean,
    data: () => Float32Array,
  ): PackedWeights | null;
  /** Restores a backend, which is about to end. Frees all packed weights. */
  release(backend: DataOwner): void;
  /** Restores all backends, and frees all packed weights. */
  dispose(): void;
}

/** @internal @param maxMemory the limit of `wg`, in bytes */
export function keepWeights(wg: Gemm, maxMemory: number): KeptWeights {
  let matrices = new WeakMap<object, WeightMatrix[]>();
  // Weak, so that a tensor that nobody disposes of does not keep its packed weights: the instance
  // frees them when they are collected.
  const held = new Set<WeakRef<PackedWeights>>();
  /** Restores the backends. */
  const hooks = new Map<DataOwner, () => void>();

  const free = (dataId: object) => {
    const list = matrices.get(dataId);
    if (!list) return;
    matrices.delete(dataId);
    for (const { packed } of list) packed?.dispose();
  };

  const freeAll = () => {
    for (const each of held) each.deref()?.dispose();
    held.clear();
    matrices = new WeakMap();
  };

  const pack = (data: Float32Array, { rows, columns, trans }: WeightMatrix) => {
    for (const each of held) if (each.deref()?.disposed ?? true) held.delete(each);
    // The other half is for the operands of products, which would be out-of-core without it.
    if (wg.memory().inUse + data.byteLength > maxMemory / 2) return null;
    try {
      const packed = wg.pack({ data, shape: [rows, columns] }, { op: 'matmul', trans });
      held.add(new WeakRef(packed));
      return packed;
    } catch (error) {
      if (error instanceof OutOfMemoryError) return null;
      throw error;
    }
  };

  return {
    find(backend, dataId, rows, columns, trans, data) {
      let list = matrices.get(dataId);
      if (!list) matrices.set(dataId, (list = []));
      let matrix = list.find(
        (each) => each.rows === rows && each.columns === columns && each.trans === trans,
      );
      if (!matrix) {
        matrix = { rows, columns, trans, packed: null, isWanted: true };
        list.push(matrix);
      } else if (matrix.isWanted) {
        matrix.isWanted = false;
        if (!hooks.has(backend)) hooks.set(backend, watch(backend, free));
        matrix.packed = pack(data(), matrix);
      }
      return matrix.packed;
    },
    release(backend) {
      hooks.get(backend)?.();
      hooks.delete(backend);
      // Weights of other backends, too: they are packed again. So there is one list.
      freeAll();
    },
    dispose() {
      for (const restore of hooks.values()) restore();
      hooks.clear();
      freeAll();
    },
  };
}

/** Calls `free` after a backend disposed of data. Returns what restores the backend. */
function watch(backend: DataOwner, free: (dataId: object) => void): () => void {
  const isOwn = Object.hasOwn(backend, 'disposeData');
  const before = backend.disposeData;
  const disposeData: DataOwner['disposeData'] = function (this: DataOwner, dataId, ...force) {
    const isFree = before.call(this, dataId, ...force);
    if (isFree) free(dataId);
    return isFree;
  };
  backend.disposeData = disposeData;
  return () => {
    if (backend.disposeData !== disposeData) return; // somebody calls it from a hook of their own
    if (isOwn) backend.disposeData = before;
    else delete (backend as Partial<DataOwner>).disposeData;
  };
}
