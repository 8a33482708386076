/** The bytes at an address, in Node or in a browser. */
export async function bytesAt(address: URL): Promise<Uint8Array<ArrayBuffer>> {
  // fetch() of Node does not take file: addresses, and a browser has nothing else.
  if (address.protocol === 'file:')
    return new Uint8Array(await (await import('node:fs/promises')).readFile(address));
  return new Uint8Array(await (await fetch(address)).arrayBuffer());
}

/** All kinds of sources that the option `assets` may return, from a file's address and bytes. */
export function sourcesOf(address: URL, bytes: Uint8Array<ArrayBuffer>) {
  const copy = () => new Uint8Array(bytes);
  return [
    address,
    address.href,
    bytes,
    copy().buffer,
    new DataView(copy().buffer),
    new WebAssembly.Module(bytes),
  ];
}
