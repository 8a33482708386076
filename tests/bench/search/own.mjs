// wgemm's side of the benchmark of search, and its bounds.
import { createGemm } from 'wgemm';
import { createIndex } from 'wgemm/search';
import { startProgram } from '../program.mjs';
import { batch, dimensions } from './data.mjs';

const countOf = (rows) => rows.length / dimensions;

/** The indexes: the type, what rescores, and whether `fast` searches the same index again. */
export const forms = [
  { dtype: 'float32', alsoFast: true },
  { dtype: 'bfloat16', alsoFast: true },
  { dtype: 'int8' },
  { dtype: 'int8', rescore: 'float32' },
  { dtype: 'int8', rescore: 'bfloat16' },
];

/** An index of its own instance: a million vectors of all types exceed the memory of one. */
export async function wgemmIndex({ dtype, rescore, alsoFast }, { vectors }, { k, threads }) {
  const wg = await createGemm({ threads });
  const start = performance.now();
  const index = createIndex(wg, { dimensions, dtype, rescore, capacity: countOf(vectors) });
  index.add(vectors);
  const build = performance.now() - start;
  const dispose = () => wg.dispose();
  return [false, true].slice(0, alsoFast ? 2 : 1).map((fast) => {
    const searchOf = (count) => {
      const size = count * k;
      const out = { positions: new Uint32Array(size), scores: new Float32Array(size) };
      return (query) => {
        index.search(query, k, { out, fast });
        return out.positions;
      };
    };
    const searchMany = searchOf(batch);
    return {
      name: ['wgemm', dtype, rescore && `rescored by ${rescore}`, fast && 'fast']
        .filter(Boolean)
        .join(', '),
      kind: 'own',
      build,
      bytes: index.byteLength,
      one: searchOf(1),
      many: (data) => searchMany({ data, shape: [batch, dimensions] }),
      isExact: dtype === 'float32',
      dispose,
    };
  });
}

/** What productAlone() takes: the product of an index, and of a search with `fast`. */
export const products = [
  { dtype: 'float32', determinism: 'strict' },
  { dtype: 'float32', determinism: 'fast' },
  { dtype: 'int8', determinism: 'strict' },
];

/** The product with all vectors as packed weights, whose result is written and not searched. */
export async function productAlone({ dtype, determinism }, { vectors, queries }, { threads }) {
  const wg = await createGemm({ threads, determinism });
  const isFloat = dtype === 'float32';
  const count = countOf(vectors);
  const b = wg.pack(
    { data: elementsOf(dtype, vectors), shape: [count, dimensions] },
    { op: isFloat ? 'gemm' : 'qgemm', trans: true },
  );
  const productOf = (rows) => {
    const a = wg.alloc(dtype, [rows, dimensions]);
    a.data.set(elementsOf(dtype, queries.subarray(0, rows * dimensions)));
    const out = wg.alloc(isFloat ? 'float32' : 'int32', [rows, count]);
    return isFloat ? () => wg.gemm(a, b, null, { out }) : () => wg.matmulInteger(a, b, { out });
  };
  return {
    name: `product alone, ${dtype}${isFloat && determinism === 'fast' ? ', fast' : ''}`,
    kind: 'bound',
    bytes: b.byteLength,
    one: productOf(1),
    many: productOf(batch),
    dispose: () => wg.dispose(),
  };
}

/** The elements of vectors of length 1. Int8Array.from() would make a list of all, first. */
function elementsOf(dtype, rows) {
  if (dtype === 'float32') return rows;
  const codes = new Int8Array(rows.length);
  for (let i = 0; i < rows.length; ++i) codes[i] = 127 * rows[i];
  return codes;
}

/** Reads as many bytes as the vectors have in float32, and does nothing else. */
export async function memoryBandwidth({ vectors }, { build }) {
  const program = await startProgram(build);
  program._set_memory(vectors.byteLength);
  const read = () => program._read_memory(1);
  return {
    name: 'memory, float32',
    kind: 'bound',
    bytes: vectors.byteLength,
    one: read,
    many: read,
    dispose: () => program._set_memory(0),
  };
}
