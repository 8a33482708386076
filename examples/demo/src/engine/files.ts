/** Files that come with the page. */

export async function fetchBytes(address: string): Promise<Uint8Array> {
  const answer = await fetch(new URL(address, self.location.href));
  if (!answer.ok) throw new Error(`${answer.url} is not to be had: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** What `get` fetches once; after a failure it is asked for again. */
export function once<T>(was: Promise<T> | undefined, get: () => Promise<T>, forget: () => void) {
  return (
    was ??
    get().catch((error: unknown) => {
      forget();
      throw error;
    })
  );
}
