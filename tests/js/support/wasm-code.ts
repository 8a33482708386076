/** The code of a WebAssembly module, for tests of the compiler's output. */

/** The bytes of an instruction with vectors: its prefix, and its number in LEB128. */
export const simd = (number: number): Buffer =>
  Buffer.of(0xfd, (number & 0x7f) | 0x80, number >> 7);

/** The code of each function, in order, and of those that a module exports by name. */
export function codeOf(bytes: Buffer): { functions: Buffer[]; exported: Map<string, Buffer> } {
  let at = 8;
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  const name = () => {
    const length = number();
    return bytes.toString('utf8', at, (at += length));
  };
  const indices = new Map<string, number>();
  const functions: Buffer[] = [];
  while (at < bytes.length) {
    const section = bytes[at++];
    const end = number() + at;
    if (section === 7) {
      for (let left = number(); left > 0; --left) {
        const [exported, kind, index] = [name(), bytes[at++], number()];
        if (kind === 0) indices.set(exported, index);
      }
    } else if (section === 10) {
      for (let left = number(); left > 0; --left) {
        const length = number();
        functions.push(bytes.subarray(at, (at += length)));
      }
    }
    at = end;
  }
  const imported = WebAssembly.Module.imports(new WebAssembly.Module(new Uint8Array(bytes))).filter(
    ({ kind }) => kind === 'function',
  ).length;
  const exported = new Map(
    Array.from(indices, ([of, index]) => [of, functions[index - imported]!]),
  );
  return { functions, exported };
}

/** How often an instruction occurs in code. */
export function count(part: Buffer, whole: Buffer): number {
  let found = 0;
  for (let at = whole.indexOf(part); at >= 0; at = whole.indexOf(part, at + part.length)) ++found;
  return found;
}
