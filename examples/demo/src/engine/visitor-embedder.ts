/** A visitor's model of embeddings: the texts that are nearest to a text. */
import { createGemm, type Gemm } from 'wgemm';
import { createIndex } from 'wgemm/search';
import { createEmbedder } from '../../../embed/embedder.mjs';
import { readFiles } from '../../../embed/files.mjs';
import examples from '../../../embed/texts.txt?raw';
import { threads } from './instance.ts';
import { paced } from './pace.ts';
import type { Report } from './report.ts';
import { inTurn } from './turn.ts';

export interface EmbedderFacts {
  /** The path of the model in the folder. */
  file: string;
  pooling: string;
  /** Tokens per text, at most. */
  limit: number;
  /** Texts to begin with, one per line. */
  examples: string;
}

export interface NearestTexts {
  found: { text: string; score: number }[];
  /** ms per text. */
  ms: number;
}

interface Embedder {
  pooling: string;
  embed(text: string): Promise<Float32Array>;
  dispose(): void;
}

const most = 5;

let wg: Gemm | undefined;
let embedder: Embedder | undefined;
/** Of texts that were embedded. */
let known = new Map<string, Float32Array>();

export function open(
  folder: string,
  files: [string, File][],
  report: Report,
): Promise<EmbedderFacts | undefined> {
  return inTurn(
    async () => {
      embedder?.dispose();
      wg?.dispose();
      [wg, embedder, known] = [undefined, undefined, new Map()];
      const byPath = new Map(files);
      const read = async (path: string) => {
        const file = byPath.get(path);
        return file && new Uint8Array(await file.arrayBuffer());
      };
      const { bytes, ...rest } = await readFiles(folder, read);
      wg = await createGemm({ models: true, threads });
      embedder = await createEmbedder(bytes, { wg, ...rest });
      const { file, limit } = rest as { file: string; limit: number };
      return { file, limit, pooling: embedder.pooling, examples: examples.trim() };
    },
    () => report(0),
  );
}

export function nearest(
  texts: string[],
  query: string,
  report: Report,
): Promise<NearestTexts | undefined> {
  return inTurn(
    async () => {
      const all = [query, ...texts];
      let done = 0;
      const goOn = paced(report, () => done / all.length);
      const start = performance.now();
      const before = known.size;
      for (const text of all) {
        if (!known.has(text)) known.set(text, await embedder!.embed(text));
        ++done;
        if (!(await goOn())) return undefined;
      }
      const ms = (performance.now() - start) / Math.max(1, known.size - before);
      const wanted = known.get(query)!;
      const index = createIndex(wg!, { dimensions: wanted.length });
      try {
        for (const text of texts) index.add(known.get(text)!);
        const found = index.search(wanted, Math.min(most, texts.length));
        return { ms, found: found.map(({ id, score }) => ({ text: texts[id]!, score })) };
      } finally {
        index.dispose();
      }
    },
    () => report(0),
  );
}
