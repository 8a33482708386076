/** What readers take files from, and how much they read. */
import { describe, expect, it } from 'vitest';
import { readGGUF, readSafetensors, type WeightsSource } from 'wgemm/weights';
import { encodeGGUF, encodeSafetensors } from '../../fuzz/weights-files.mjs';
import { expectError, rejected } from '../support/errors.js';
import { SharedBuffer } from '../support/tensors.js';

const [large, small] = [new Uint8Array(80_000).fill(1), Uint8Array.of(1, 2, 3, 4)];
const gguf = encodeGGUF({
  tensors: [
    { name: 'large', ne: [large.length], type: 24, data: large },
    { name: 'small', ne: [1], type: 26, data: small },
  ],
});
const safetensors = encodeSafetensors({
  tensors: [
    { name: 'large', dtype: 'I8', shape: [large.length], data: large },
    { name: 'small', dtype: 'I32', shape: [1], data: small },
  ],
});
const formats = [
  ['readGGUF', readGGUF, gguf],
  ['readSafetensors', readSafetensors, safetensors],
] as const;

/** A function that reads ranges, and the ranges that it has read. */
function counted(bytes: Uint8Array) {
  const ranges: [offset: number, length: number][] = [];
  const source = (offset: number, length: number) => {
    ranges.push([offset, length]);
    return bytes.slice(offset, offset + length);
  };
  return { ranges, source };
}

describe.each(formats)('%s', (op, read, bytes) => {
  const padded = new Uint8Array(bytes.length + 7);
  padded.set(bytes, 7);
  const shared = new Uint8Array(new SharedBuffer(bytes.length));
  shared.set(bytes);
  const sources: Record<string, () => WeightsSource> = {
    bytes: () => bytes,
    'bytes within a buffer': () => padded.subarray(7),
    'an ArrayBuffer': () => bytes.buffer,
    'shared memory': () => shared,
    'a Blob': () => new Blob([bytes]),
    'a File': () => new File([bytes], 'model'),
    'a function': () => (offset, length) => bytes.slice(offset, offset + length),
    'a function that returns a promise': () => async (offset, length) =>
      Promise.resolve(bytes.slice(offset, offset + length).buffer),
  };

  it.each(Object.keys(sources))('reads %s', async (name) => {
    const file = await read((sources[name] as () => WeightsSource)());
    expect(Array.from(file.tensors.keys())).toEqual(['large', 'small']);
    expect((await file.tensor('small')).data).toEqual(Int32Array.of(0x04030201));
    const tensor = await file.tensor('large');
    expect(tensor.data).toEqual(new Int8Array(large.buffer));
    const isView = tensor.data.buffer === bytes.buffer || tensor.data.buffer === padded.buffer;
    expect(isView).toBe(/^(bytes|an A)/.test(name));
  });

  it('reads no more than the header and the tensor', async () => {
    const { ranges, source } = counted(bytes);
    const file = await read(source);
    expect(ranges).toEqual([[0, 65536]]);
    const { offset = NaN, byteLength = NaN } = file.tensors.get('small') ?? {};
    await file.tensor('small');
    expect(ranges).toEqual([
      [0, 65536],
      [offset, byteLength],
    ]);
  });

  it('reads tensors at the same time', async () => {
    const file = await read(new Blob([bytes]));
    const names = ['small', 'large', 'small'];
    const tensors = await Promise.all(names.map((name) => file.tensor(name)));
    expect(tensors.map(({ data }) => data.length)).toEqual([1, 80_000, 1]);
  });

  it('refuses other values', async () => {
    for (const [source, found] of [
      [undefined, 'undefined'],
      [null, 'null'],
      [7, '7'],
      [{}, 'an object'],
      [new Float32Array(4), 'Float32Array'],
      [new Response('x'), 'an object'],
      [Promise.resolve(bytes), 'a promise, which must be awaited'],
    ] as const) {
      const says = [`source is ${found}; it must be a Uint8Array, an ArrayBuffer, a Blob, a URL`];
      expectError(await rejected(read(source as never)), {
        ...{ code: 'ARGUMENT', op, argument: 'source', says },
      });
    }
    const detached = new Uint8Array(8);
    structuredClone(detached.buffer, { transfer: [detached.buffer] });
    const error = await rejected(read(detached));
    expectError(error, { code: 'ARGUMENT', op, argument: 'source', says: ['detached'] });
  });

  it('refuses what a function returns', async () => {
    for (const [result, says] of [
      [undefined, 'the result of source for 65536 bytes at 0 is undefined'],
      ['text', 'the result of source for 65536 bytes at 0 is "text"'],
      [new Uint8Array(65537), 'has 65537 bytes; expected 65536 or less'],
    ] as const) {
      const error = await rejected(read((() => result) as never));
      expectError(error, { code: 'ARGUMENT', op, argument: 'source', says: [says] });
    }
    const own = new RangeError('disk');
    const error = await rejected(read(() => Promise.reject(own)));
    expect(error).toBe(own);
  });

  it('says which tensor is not whole', async () => {
    const file = await read((offset, length) =>
      offset === 0 ? bytes.slice(0, length) : bytes.slice(offset, offset + length).slice(1),
    );
    const error = await rejected(file.tensor('small'));
    const says = ['has tensor "small", which has 4 bytes, and only 3 of them are in the file'];
    expectError(error, { code: 'ARGUMENT', op, argument: 'source', says });
  });

  it('knows the size of a file that ends within the first read', async () => {
    const short = bytes.slice(0, 60_000);
    const error = await rejected(read((offset, length) => short.slice(offset, offset + length)));
    const says = [/has tensor "large" at \d+, which ends at \d+; the file has 60000 bytes/];
    expectError(error, { code: 'ARGUMENT', op, argument: 'source', says });
  });

  it('says that a Blob cannot be read', async () => {
    const cause = new Error('gone');
    const blob = {
      size: 1000,
      slice: () => blob,
      arrayBuffer: () => Promise.reject(cause),
    };
    const error = await rejected(read(blob));
    expectError(error, { code: 'LOAD', op, argument: 'source', says: ['cannot be read: gone'] });
    expect((error as Error).cause).toBe(cause);
  });
});

describe('a long header', () => {
  const words = Array.from({ length: 30_000 }, (_, i) => `word ${i}`);
  const tokens = ['tokens', 'list', ['text', words]] as const;

  it('of GGUF is read by ranges that grow, each byte once', async () => {
    const bytes = encodeGGUF({ metadata: [['a', 'text', 'b'], tokens, ['c', 'text', 'd']] });
    const { ranges, source } = counted(bytes);
    const { metadata } = await readGGUF(source);
    expect(metadata.get('tokens')).toEqual(words);
    expect(metadata.get('c')).toBe('d');
    let next = 0;
    for (const [offset, length] of ranges) {
      expect(offset).toBe(next);
      next += length;
    }
    expect(ranges.length).toBeLessThan(6);
    expect(next).toBeLessThan(2 * bytes.length + 65536);
  });

  it('of safetensors is read by two ranges', async () => {
    const tensors = words.slice(0, 9999).map((name) => ({
      ...{ name, dtype: 'U8', shape: [1], data: Uint8Array.of(1) },
    }));
    const bytes = encodeSafetensors({ tensors });
    const { ranges, source } = counted(bytes);
    const file = await readSafetensors(source);
    expect(file.tensors.size).toBe(9999);
    const start = bytes.length - 9999;
    expect(ranges).toEqual([
      [0, 65536],
      [65536, start - 65536],
    ]);
  });
});
