// The peers in the benchmark of search. Each finds the k vectors with the largest dot product,
// which for vectors of length 1 is the cosine.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { dimensions, insert } from './data.mjs';
import { loadHnswlib, loadUsearch } from './packages/load.mjs';

/** The parameters of HNSW that hnswlib and its README name as usual. */
const links = 16;
const efConstruction = 200;
/** The lengths of the list of candidates: hnswlib's default, USearch's default, a careful one. */
const efs = [10, 64, 256];

/** The elements of a vector, its links on the lowest level with their number, and its label. */
const bytesPerVector = 4 * dimensions + 4 * (2 * links + 1) + 4;

const rowOf = (rows, i) => rows.subarray(i * dimensions, (i + 1) * dimensions);
const countOf = (rows) => rows.length / dimensions;

/** A loop as a program has it without a library, with the k best so far. */
export function plainLoop({ vectors }, { k }) {
  const search = (query) => {
    const list = [];
    for (let at = 0; at < vectors.length; at += dimensions) {
      let sum = 0;
      for (let j = 0; j < dimensions; ++j) sum += vectors[at + j] * query[j];
      insert(list, k, at / dimensions, sum);
    }
    return list.map(({ position }) => position);
  };
  return { name: 'loop', isExact: true, bytes: vectors.byteLength, ...oneByOne(search) };
}

/** MatMul with the vectors as a constant, which ONNX Runtime Web packs, and TopK. */
export async function onnxRuntime({ vectors }, { k, ort }) {
  const count = countOf(vectors);
  const model = encodeGraph({
    opsets: { '': 17 },
    nodes: [
      { op: 'MatMul', inputs: ['queries', 'vectors'], outputs: ['scores'] },
      { op: 'TopK', inputs: ['scores', 'k'], outputs: ['best', 'positions'] },
    ],
    initializers: [
      {
        name: 'vectors',
        dtype: 'float32',
        shape: [dimensions, count],
        data: transposed(vectors),
      },
      { name: 'k', dtype: 'int64', shape: [1], data: BigInt64Array.of(BigInt(k)) },
    ],
    inputs: [{ name: 'queries', dtype: 'float32', shape: ['count', dimensions] }],
    outputs: [{ name: 'positions', dtype: 'int64', shape: ['count', k] }],
  });
  const session = await ort.createSession(model);
  const search = async (queries) => {
    const shape = [countOf(queries), dimensions];
    const feed = ort.tensor({ dtype: 'float32', shape, data: queries });
    return (await session.run({ queries: feed })).positions.data;
  };
  return {
    name: 'ONNX Runtime Web',
    isExact: true,
    bytes: model.length,
    one: search,
    many: search,
    dispose: () => session.release(),
  };
}

function transposed(vectors) {
  const count = countOf(vectors);
  const columns = new Float32Array(vectors.length);
  for (let i = 0; i < count; ++i)
    for (let j = 0; j < dimensions; ++j) columns[j * count + i] = vectors[i * dimensions + j];
  return columns;
}

/** hnswlib, compiled to WebAssembly without SIMD. */
export async function hnswlib({ vectors }, { k }) {
  const library = await loadHnswlib();
  const count = countOf(vectors);
  const index = new library.HierarchicalNSW('ip', dimensions, '');
  index.initIndex(count, links, efConstruction, 1);
  for (let i = 0; i < count; ++i) index.addPoint(rowOf(vectors, i), i, false);
  const dispose = () => index.delete();
  return efs.map((ef) => ({
    isApproximate: true,
    dispose,
    name: `hnswlib-wasm, ef ${ef}`,
    bytes: count * bytesPerVector,
    ...oneByOne((query) => {
      index.setEfSearch(ef);
      return index.searchKnn(query, k, undefined).neighbors;
    }),
  }));
}

/** USearch by its native library: a bound, since no page can run it. */
export async function usearch({ vectors }, { k, threads }) {
  const { Index } = await loadUsearch();
  const index = new Index({ dimensions, metric: 'ip', quantization: 'f32', connectivity: links });
  index.add(
    BigUint64Array.from({ length: countOf(vectors) }, (_, i) => BigInt(i)),
    vectors,
    threads,
  );
  const search = (queries) => index.search(queries, k, threads).keys;
  return {
    name: 'usearch, native',
    isApproximate: true,
    bytes: bytesOf(index),
    one: search,
    many: search,
  };
}

/** The size of its file: it does not tell how many bytes it takes. */
function bytesOf(index) {
  const folder = mkdtempSync(join(tmpdir(), 'wgemm-'));
  try {
    const file = join(folder, 'index');
    index.save(file);
    return statSync(file).size;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export async function usearchExact({ vectors }, { k, threads }) {
  const { exactSearch } = await loadUsearch();
  const search = (queries) => exactSearch(vectors, queries, dimensions, k, 'ip', threads).keys;
  return {
    name: 'usearch, exact, native',
    isExact: true,
    bytes: vectors.byteLength,
    one: search,
    many: search,
  };
}

/** For a peer that takes one query per call. */
function oneByOne(search) {
  return {
    one: search,
    many: (queries) =>
      Array.from({ length: countOf(queries) }, (_, i) => [...search(rowOf(queries, i))]).flat(),
  };
}
