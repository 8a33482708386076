/** Who races: wgemm, and the peers that were fetched. */
import type { Gemm } from 'wgemm';
import { singleThreaded } from './instance.ts';
import { peers } from './peers.ts';
import { type Contestant, type Product, wgemmOn } from './product.ts';

/** Makes a contestant for a product; undefined if it does not have the type. */
export type Make = (product: Product) => Promise<Contestant | undefined>;

/**
 * wgemm, and each peer. If a peer has only one thread, wgemm on one thread races too, with another
 * name.
 *
 * @param wg undefined if wgemm does not start here
 */
export async function contestantMakers(wg: Gemm | undefined): Promise<Make[]> {
  const makes: Make[] = [];
  const isAlone = ({ threads }: { threads: number }) => threads === 1 && wg && wg.info.threads > 1;
  if (wg) makes.push((product) => Promise.resolve(wgemmOn(wg, product)));
  if (peers().some(isAlone)) {
    const single = await singleThreaded();
    makes.push((product) =>
      Promise.resolve({ ...wgemmOn(single, product), name: 'wgemm, 1 thread' }),
    );
  }
  for (const peer of peers())
    makes.push(async (product) => {
      const made = await peer.prepare(product);
      return made && isAlone(peer) ? { ...made, name: `${made.name}, 1 thread` } : made;
    });
  return makes;
}
