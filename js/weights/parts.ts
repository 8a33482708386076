/** Reads and packs matrices of a file in parts of about a megabyte. */
import type { InstanceLink, Signal, WorkerWeights } from '../api/worker-handles.js';
import { ArgumentError } from '../base/errors.js';
import { type Operand, operandOf } from '../call/operand.js';
import { Core } from '../instance/core.js';
import type { PackedWeights } from '../instance/heap.js';
import { beginPack, packPart, type PartedWeights, type PartPlace } from '../ops/pack-parts.js';
import { mostOfPart, type Source } from './source.js';
import type { MatrixInfo } from './tensor.js';

/**
 * @internal Reads rows in parts. It reads the next part while the caller uses one, except from a
 * function.
 * @param rows rows per part
 */
export async function* partsOf(
  source: Source,
  { shape: [n = 0], offset, byteLength }: Omit<MatrixInfo, 'type'>,
  rows: number,
  signal: Signal | undefined,
): AsyncGenerator<readonly [first: number, bytes: Uint8Array]> {
  if (signal?.aborted) throw signal.reason;
  if (byteLength === 0) return;
  const flow = source.flow(offset, byteLength, signal && new AbortController());
  let fail: (reason: unknown) => void = () => undefined;
  const pull = (first: number) => {
    const length = (Math.min(rows, n - first) * byteLength) / n;
    const part = new Promise<Uint8Array>((resolve, reject) => {
      fail = reject; // Promise.race() would keep all parts as long as the signal
      const check = (bytes: Uint8Array) => {
        if (bytes.length === length) return resolve(bytes);
        source.checkUsable(bytes);
        const end = offset + (first * byteLength) / n + bytes.length;
        const { size = Infinity } = source;
        const found = size <= end ? `at ${size}, ` : '';
        const place =
          end > offset ? `at ${end}, within the tensor` : `${found}before the tensor at ${offset}`;
        throw source.malformed(`ends ${place}`);
      };
      flow.pull(length).then(check).catch(reject);
    });
    part.catch(() => undefined); // nobody may wait for it yet
    return part;
  };
  const abort = () => fail(signal?.reason);
  try {
    signal?.addEventListener('abort', abort);
    let next: Promise<Uint8Array> | undefined;
    for (let first = 0; first < n; first += rows) {
      const bytes = await (next ?? pull(first));
      next = source.readsAhead && first + rows < n ? pull(first + rows) : undefined;
      yield [first, bytes];
      if (signal?.aborted) throw signal.reason;
    }
  } finally {
    flow.cancel();
    signal?.removeEventListener('abort', abort);
  }
}

/** @internal A part of weights: where it is, and its elements or blocks. */
export type WeightsPart = readonly [place: PartPlace, part: Operand];

/** How a matrix becomes weights. */
interface Packing {
  /** What the parts make up. */
  readonly weights: PartedWeights;
  readonly source: Source;
  /** Where the matrix is in the source. */
  readonly info: Omit<MatrixInfo, 'type'>;
  /** A part has a multiple of this many rows of the file. */
  readonly step: number;
  /** Makes a part of rows. */
  readonly partOf: (first: number, bytes: Uint8Array) => WeightsPart;
  readonly signal?: Signal | undefined;
  /** Receives the first row that is not packed yet. */
  readonly tell?: (row: number) => void | Promise<void>;
}

/**
 * @internal Packs a matrix while it is read, so that it never lies in memory as a whole, except in
 * its packed form. If that fails, the memory of the weights is free.
 * @param instance where the weights are
 */
export async function packRows(
  op: string,
  instance: Core | InstanceLink,
  { weights, source, info, step, partOf, signal, tell }: Packing,
): Promise<PackedWeights | WorkerWeights> {
  const isHere = instance instanceof Core;
  const packed = isHere
    ? beginPack(instance, op, weights)
    : ((await instance.packFrom({ signal }, weights, [])) as WorkerWeights);
  try {
    const [count = 0] = info.shape;
    const rows = step * Math.max(1, Math.floor((mostOfPart * count) / info.byteLength / step));
    for await (const [first, bytes] of partsOf(source, info, rows, signal)) {
      source.checkUsable(bytes);
      const [place, part] = partOf(first, bytes);
      if (isHere) packPart(instance, op, packed as PackedWeights, place, part);
      else await instance.packFrom({ signal }, place, [operandOf('weights', 0, [], packed), part]);
      await tell?.(Math.min(first + rows, count));
    }
    return packed;
  } catch (error) {
    packed.dispose();
    if (error instanceof ArgumentError && error.op === op && error.argument === 'bytes')
      throw new ArgumentError(op, 'source', error.message.replace('bytes', 'source'));
    throw error;
  }
}
