/** Other libraries, which are fetched only when the visitor asks. */
import type { Contestant, Product } from './product.ts';

export type PeerName = 'tfjs' | 'ort';

export interface PeerFacts {
  name: PeerName;
  title: string;
  version: string;
  /** Bytes of the files that were fetched for it, as they were sent. */
  bytes: number;
  /** From the start of the fetch to its first product. */
  ms: number;
  threads: number;
}

export interface Peer {
  version: string;
  threads: number;
  /** The product by this library; undefined if it has no such type. */
  prepare: (product: Product) => Promise<Contestant | undefined>;
}

const fetched = new Map<PeerName, Peer>();

/** The libraries that are here. */
export const peers = (): Peer[] => [...fetched.values()];

const loads: Record<PeerName, { title: string; load: (threads: number) => Promise<Peer> }> = {
  tfjs: { title: 'tfjs', load: async () => (await import('./peer-tfjs.ts')).start() },
  ort: {
    title: 'ONNX Runtime Web',
    load: async (threads) => (await import('./peer-ort.ts')).start(threads),
  },
};

/**
 * Fetches a library, starts it on as many threads as wgemm has if it can, and computes a small
 * product.
 */
export async function fetchPeer(name: PeerName, threads: number): Promise<PeerFacts> {
  const { title, load } = loads[name];
  const before = new Set(fetchedFiles().keys());
  const start = performance.now();
  const peer = await load(threads);
  const small = { m: 8, n: 8, k: 8, dtype: 'float32', transA: false, transB: false } as const;
  const first = await peer.prepare(small);
  await first?.run(1);
  const ms = performance.now() - start;
  first?.dispose();
  fetched.set(name, peer);
  const bytes = await bytesOf(new Map([...fetchedFiles()].filter(([file]) => !before.has(file))));
  return { name, title, version: peer.version, bytes, ms, threads: peer.threads };
}

/** Forgets a library that nobody waits for any more. */
export const dropPeer = (name: PeerName): boolean => fetched.delete(name);

/** Address of every file that was fetched -> its bytes. Each thread may fetch a script again. */
function fetchedFiles(): Map<string, number> {
  const entries = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
  return new Map(entries.map(({ name, encodedBodySize }) => [name, encodedBodySize]));
}

/** WebKit does not tell a worker the sizes, so files without one are read again from the cache. */
async function bytesOf(files: Map<string, number>): Promise<number> {
  let sum = 0;
  for (const [file, size] of files)
    sum += size || (await (await fetch(file, { cache: 'force-cache' })).arrayBuffer()).byteLength;
  return sum;
}
