/** Other libraries, which are fetched only when the visitor asks. */
import type { Contestant, Product } from './product.ts';

export type PeerName = 'tfjs' | 'ort';

export interface PeerFacts {
  name: PeerName;
  title: string;
  version: string;
  /** Bytes that were fetched for it; 0 if the browser does not tell. */
  bytes: number;
  /** From the start of the fetch to its first product. */
  ms: number;
  threads: number;
}

export interface Peer {
  version: string;
  threads: number;
  /** The product by this library; undefined if it has no such type. */
  prepare(product: Product): Promise<Contestant | undefined>;
}

const fetched = new Map<PeerName, Peer>();

/** The libraries that are here. */
export const peers = (): Peer[] => [...fetched.values()];

const loads: Record<PeerName, { title: string; load: (threads: number) => Promise<Peer> }> = {
  tfjs: { title: 'tfjs', load: async (threads) => (await import('./peer-tfjs.ts')).start(threads) },
  ort: {
    title: 'ONNX Runtime Web',
    load: async (threads) => (await import('./peer-ort.ts')).start(threads),
  },
};

/** Fetches a library, starts it on as many threads as wgemm has, and computes a small product. */
export async function fetchPeer(name: PeerName, threads: number): Promise<PeerFacts> {
  const { title, load } = loads[name];
  const before = performance.getEntriesByType('resource').length;
  const start = performance.now();
  const peer = await load(threads);
  const small = { m: 8, n: 8, k: 8, dtype: 'float32', transA: false, transB: false } as const;
  const first = await peer.prepare(small);
  await first?.run(1);
  const ms = performance.now() - start;
  first?.dispose();
  fetched.set(name, peer);
  const entries = performance.getEntriesByType('resource').slice(before);
  const bytes = entries.reduce(
    (sum, entry) => sum + ((entry as PerformanceResourceTiming).encodedBodySize || 0),
    0,
  );
  return { name, title, version: peer.version, bytes, ms, threads: peer.threads };
}
