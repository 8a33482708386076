import { createGemm } from 'wgemm';
import { createIndex } from 'wgemm/search';

const wg = await createGemm({ threads: 'auto' });
const index = createIndex(wg, { dimensions: 384, metric: 'cosine', capacity: 10_000 });

// Your embeddings, one after the other. With dtype: 'int8', the index takes a quarter of the bytes.
const vectors = Float32Array.from({ length: 384 * 10_000 }, () => Math.random() - 0.5);
index.add(vectors);

for (const { id, score } of index.search(vectors.subarray(0, 384), 10)) console.log(id, score);
wg.dispose();
