/** readGGUF: what a header says, and what is refused. */
import { describe, expect, it } from 'vitest';
import { readGGUF, type WeightsSource } from 'wgemm/weights';
import { encodeGGUF, type GGUFSpec } from '../../fuzz/weights-files.mjs';
import { expectError, rejected, thrown } from '../support/errors.js';

const read = (file: GGUFSpec) => readGGUF(encodeGGUF(file));

async function refusal(source: unknown, argument = 'source'): Promise<string> {
  const error = await rejected(readGGUF(source as WeightsSource));
  expectError(error, { code: 'ARGUMENT', op: 'readGGUF', argument, says: [] });
  return (error as Error).message.replace('readGGUF: source is not a GGUF file: it ', '');
}

const refusalOf = (file: GGUFSpec) => refusal(encodeGGUF(file));

const weights = { name: 'w', ne: [32, 2], type: 0, data: new Uint8Array(256).fill(7) };

describe('a header', () => {
  it.each([2, 3])('of version %i', async (version) => {
    const file = await read({ version, tensors: [weights] });
    expect(file.version).toBe(version);
    expect(Array.from(file.metadata)).toEqual([]);
    expect(Array.from(file.tensors)).toEqual([
      ['w', { name: 'w', type: 'F32', shape: [2, 32], offset: 96, byteLength: 256 }],
    ]);
  });

  it('has metadata of all types', async () => {
    const { metadata } = await read({
      metadata: [
        ['uint8', 'uint8', 255],
        ['int8', 'int8', -1],
        ['uint16', 'uint16', 65535],
        ['int16', 'int16', -1],
        ['uint32', 'uint32', 2 ** 32 - 1],
        ['int32', 'int32', -1],
        ['float32', 'float32', 0.1],
        ['true', 'bool', 1],
        ['false', 'bool', 0],
        ['text', 'text', '\u{feff}é\0'],
        ['uint64', 'uint64', 2n ** 53n - 1n],
        ['large', 'uint64', 2n ** 64n - 1n],
        ['int64', 'int64', -1],
        ['small', 'int64', -(2n ** 63n)],
        ['float64', 'float64', 0.1],
        ['__proto__', 'text', ''],
      ],
    });
    expect(Array.from(metadata)).toEqual([
      ['uint8', 255],
      ['int8', -1],
      ['uint16', 65535],
      ['int16', -1],
      ['uint32', 2 ** 32 - 1],
      ['int32', -1],
      ['float32', Math.fround(0.1)],
      ['true', true],
      ['false', false],
      ['text', '\u{feff}é\0'],
      ['uint64', 2 ** 53 - 1],
      ['large', 2n ** 64n - 1n],
      ['int64', -1],
      ['small', -(2n ** 63n)],
      ['float64', 0.1],
      ['__proto__', ''],
    ]);
  });

  it('has lists of all types', async () => {
    const { metadata } = await read({
      metadata: [
        ['odd', 'text', 'o'], // so that numbers are not aligned
        ...['uint8', 'int8', 'uint16', 'int16', 'uint32', 'int32', 'float32', 'float64'].map(
          (type) => [type, 'list', [type, [1, 2]]] as const,
        ),
        ['uint64', 'list', ['uint64', [1, 2]]],
        ['int64', 'list', ['int64', [-1, 2]]],
        ['bool', 'list', ['bool', [0, 1]]],
        ['text', 'list', ['text', ['', 'b']]],
        [
          'list',
          'list',
          [
            'list',
            [
              ['int8', [-1]],
              ['list', [['text', ['c']]]],
            ],
          ],
        ],
        ['empty', 'list', ['text', []]],
      ],
    });
    expect(Object.fromEntries(metadata)).toEqual({
      odd: 'o',
      uint8: Uint8Array.of(1, 2),
      int8: Int8Array.of(1, 2),
      uint16: Uint16Array.of(1, 2),
      int16: Int16Array.of(1, 2),
      uint32: Uint32Array.of(1, 2),
      int32: Int32Array.of(1, 2),
      float32: Float32Array.of(1, 2),
      float64: Float64Array.of(1, 2),
      uint64: BigUint64Array.of(1n, 2n),
      int64: BigInt64Array.of(-1n, 2n),
      bool: [false, true],
      text: ['', 'b'],
      list: [Int8Array.of(-1), [['c']]],
      empty: [],
    });
  });

  it('states the alignment of the data', async () => {
    for (const alignment of [1, 8, 64, 4096]) {
      const tensors = [
        { name: 'a', ne: [1], type: 24, data: Uint8Array.of(1) },
        { name: 'b', ne: [2], type: 24, data: Uint8Array.of(2, 3) },
      ];
      const metadata = [['general.alignment', 'uint32', alignment]] as const;
      const file = await read({ alignment, metadata, tensors });
      expect(file.tensors.get('a')?.offset ?? NaN % alignment).toBeGreaterThan(0);
      expect((await file.tensor('a')).data).toEqual(Int8Array.of(1));
      expect((await file.tensor('b')).data).toEqual(Int8Array.of(2, 3));
    }
  });

  it('lists tensors whose type cannot be loaded, and loads the others', async () => {
    const file = await read({
      tensors: [
        { name: 'iq', ne: [256], type: 23, data: new Uint8Array(136) },
        { name: 'new', ne: [2, 3], type: 99, data: new Uint8Array(9) },
        { name: 'old', ne: [1], type: 31, data: new Uint8Array(9) },
        weights,
      ],
    });
    const found = Array.from(file.tensors.values(), ({ type, byteLength }) => [type, byteLength]);
    expect(found).toEqual([
      ['IQ4_XS', 136],
      ['type 99', NaN],
      ['type 31', NaN],
      ['F32', 256],
    ]);
    for (const [name, type] of [
      ['iq', 'IQ4_XS'],
      ['new', 'type 99'],
      ['old', 'type 31'],
    ] as const) {
      const error = await rejected(file.tensor(name));
      const says = [`tensor "${name}" has type ${type}, which is not supported`];
      expectError(error, { code: 'DTYPE', op: 'readGGUF', argument: 'name', says });
    }
    expect((await file.tensor('w')).toFloat32().data).toHaveLength(64);
  });

  it('has tensors of every type with one number per element', async () => {
    const data = Uint8Array.from({ length: 16 }, (_, i) => i);
    const { buffer } = data;
    const arrays = [
      [0, 'F32', 'float32', new Float32Array(buffer)],
      [30, 'BF16', 'bfloat16', new Uint16Array(buffer)],
      [24, 'I8', 'int8', new Int8Array(buffer)],
      [25, 'I16', 'int16', new Int16Array(buffer)],
      [26, 'I32', 'int32', new Int32Array(buffer)],
      [27, 'I64', 'int64', new BigInt64Array(buffer)],
      [28, 'F64', 'float64', new Float64Array(buffer)],
    ] as const;
    for (const [type, name, dtype, array] of arrays) {
      const file = await read({ tensors: [{ name: 'w', ne: [array.length], type, data }] });
      const tensor = await file.tensor('w');
      expect(tensor).toMatchObject({ type: name, dtype, shape: [array.length], data: array });
      if (!/^I|F64/.test(name)) continue;
      const error = thrown(() => tensor.toFloat32());
      const says = [`has type ${name}; convert it by tensor(`];
      expectError(error, { code: 'DTYPE', op: 'toFloat32', argument: 'type', says });
    }
  });

  it('knows the names of its tensors', async () => {
    const file = await read({ tensors: [weights] });
    for (const name of ['x', '', undefined, '__proto__']) {
      const error = await rejected(file.tensor(name as string));
      expectError(error, { code: 'ARGUMENT', op: 'readGGUF', argument: 'name', says: ['name is'] });
    }
  });

  it('is frozen', async () => {
    const { tensors } = await read({ tensors: [weights] });
    expect(Object.isFrozen(tensors.get('w'))).toBe(true);
    expect(Object.isFrozen(tensors.get('w')?.shape)).toBe(true);
  });
});

describe('refused', () => {
  it('other formats', async () => {
    expect(await refusal(new Uint8Array())).toBe('is an empty file');
    const text = (value: string) => refusal(new TextEncoder().encode(value));
    expect(await text(`<!doctype html>${' '.repeat(99)}`)).toBe('is a page of HTML');
    expect(await text('version https://git-lfs.github.com/spec/v1\noid sha256:')).toBe(
      'is a pointer of Git LFS',
    );
    expect(await text(`\x10${'\0'.repeat(7)}{"__metadata__":{}}        `)).toBe('is safetensors');
    expect(await refusalOf({ magic: 'GGML' })).toBe('does not begin with "GGUF"');
    expect(await refusalOf({ magic: 'PK\x03\x04' })).toMatch('is a zip archive');
  });

  it('other versions and big-endian files', async () => {
    expect(await refusalOf({ version: 1 })).toBe('has version 1; it must be 2 or 3');
    expect(await refusalOf({ version: 4 })).toBe('has version 4; it must be 2 or 3');
    expect(await refusalOf({ version: 3 * 2 ** 24 })).toBe('is big-endian');
  });

  it('a header that ends early, at every byte', async () => {
    const metadata = [
      ['a', 'uint16', 1],
      ['b', 'list', ['text', ['c', 'd']]],
      ['e', 'list', ['list', [['float64', [1]]]]],
    ] as const;
    const bytes = encodeGGUF({ metadata, tensors: [weights] });
    const { tensors } = await readGGUF(bytes);
    const { offset = 0 } = tensors.get('w') ?? {};
    for (let length = 1; length < offset - 31; ++length)
      expect(await refusal(bytes.slice(0, length))).toMatch(
        length < 5
          ? /^(is text|ends within its header, at)/
          : `ends within its header, at ${length}`,
      );
    expect(await refusal(bytes.slice(0, -1))).toBe(
      `has tensor "w" at ${offset}, which ends at ${offset + 256}; the file has ${offset + 255} bytes`,
    );
  });

  it('counts and lengths beyond the file', async () => {
    for (const count of [2, 2n ** 32n, 2n ** 53n - 1n]) {
      expect(await refusalOf({ tensorCount: count })).toMatch('ends within its header');
      expect(await refusalOf({ metadataCount: count })).toMatch('ends within its header');
    }
    for (const count of [2n ** 53n, 2n ** 64n - 1n]) {
      expect(await refusalOf({ tensorCount: count })).toBe(
        'has a number of tensors beyond 2^53 - 1',
      );
      expect(await refusalOf({ metadataCount: count })).toMatch('has a number of metadata beyond');
    }
    const list = (type: string, length: number) =>
      refusalOf({ metadata: [['a', 'list', [type, [], length]]] });
    expect(await list('uint8', 2 ** 40)).toMatch('ends within its header');
    expect(await list('float64', 2 ** 52)).toMatch('ends within its header');
    for (const type of ['bool', 'text', 'list'])
      expect(await list(type, 2 ** 40)).toMatch('has more than 2097152 texts and lists');
    expect(await list('text', 2 ** 20)).toMatch('ends within its header');
  });

  it('types of metadata that do not exist', async () => {
    expect(await refusalOf({ metadata: [['a', 13]] })).toBe('has metadata of type 13');
    expect(await refusalOf({ metadata: [['a', 2 ** 32 - 1]] })).toMatch('of type 4294967295');
    expect(await refusalOf({ metadata: [['a', 'list', [13, [], 1]]] })).toMatch('of type 13');
  });

  it('lists that are nested deeply', async () => {
    const nest = (depth: number): unknown[] =>
      depth === 1 ? ['uint8', []] : ['list', [nest(depth - 1)]];
    await read({ metadata: [['a', 'list', nest(8)]] });
    expect(await refusalOf({ metadata: [['a', 'list', nest(9)]] })).toBe(
      'has lists nested more than 8 deep',
    );
  });

  it('repeated names', async () => {
    const pair = ['a', 'uint8', 1] as const;
    expect(await refusalOf({ metadata: [pair, pair] })).toBe('repeats the metadata "a"');
    expect(await refusalOf({ tensors: [weights, weights] })).toBe('has tensor "w" twice');
  });

  it('alignments that are not a power of two', async () => {
    const alignment = (type: string, value: unknown) =>
      refusalOf({ metadata: [['general.alignment', type, value]] });
    for (const value of [0, 3, 48, 2 ** 32 - 1])
      expect(await alignment('uint32', value)).toBe(
        `has alignment ${value}; it must be a power of two`,
      );
    for (const [type, value] of [
      ['text', '32'],
      ['float32', 0.5],
      ['int32', -32],
      ['uint64', 2n ** 60n],
      ['uint64', 2n ** 32n],
      ['bool', 1],
    ] as const)
      expect(await alignment(type, value)).toMatch('it must be a power of two');
  });

  it('tensors that are not in the file, overlap, or are not aligned', async () => {
    const tensors = (...changes: object[]) =>
      refusalOf({
        tensors: changes.map((change, i) => ({ ...weights, name: `w${i}`, ...change })),
      });
    expect(await tensors({ offset: 16 })).toMatch('at 16 of the data; it must be a multiple of 32');
    expect(await tensors({ offset: 32 })).toMatch(/has tensor "w0" at 128, which ends at 384/);
    expect(await tensors({ offset: 2n ** 53n - 32n })).toMatch('which ends beyond 2^53 bytes');
    expect(await tensors({ offset: 2n ** 53n })).toMatch('has an offset beyond 2^53 - 1');
    expect(await tensors({}, { offset: 224 })).toMatch(
      /has tensor "w1" at 352, within another that ends at 384/,
    );
    expect(await tensors({ ne: [32, 3] })).toMatch('which ends at');
  });

  it('sizes that are too large, or not whole blocks', async () => {
    const tensor = (type: number, ...ne: (number | bigint)[]) =>
      refusalOf({ tensors: [{ ...weights, type, ne }] });
    expect(await tensor(0, 2 ** 40, 2 ** 40)).toMatch('which has more than 2^53 bytes');
    expect(await tensor(0, ...Array<number>(8).fill(2 ** 50))).toMatch('more than 2^53 bytes');
    expect(await tensor(0, 2n ** 53n)).toBe('has a size beyond 2^53 - 1');
    expect(await tensor(0, ...Array<number>(9).fill(1))).toBe(
      'has tensor "w" of 9 axes; it may have 8',
    );
    expect(await tensor(12, 32, 8)).toMatch(
      'of type Q4_K and shape [8, 32]; the last size must be a multiple of 256',
    );
    expect(await tensor(2)).toMatch('a multiple of 32');
  });

  it('long headers, before they are read', async () => {
    let most = 0;
    const source = (offset: number, length: number) => {
      most = Math.max(most, offset + length);
      const bytes = new Uint8Array(length);
      // A header that goes on for ever: one text after the other.
      if (offset === 0)
        bytes.set(encodeGGUF({ metadata: [['a', 'list', ['uint8', [], 2 ** 40]]] }));
      return bytes;
    };
    expect(await refusal(source)).toBe(
      'has a header of more than 134217728 bytes, which is the limit',
    );
    expect(most).toBe(2 ** 16);
  });

  it('many tensors and texts, with bounded memory', async () => {
    const behind = (file: GGUFSpec, zeros: number, ...rest: Uint8Array<ArrayBuffer>[]) =>
      new Blob([encodeGGUF(file), new Uint8Array(zeros), ...rest]);
    const found = 'has more than 2097152 texts and lists, which is the limit';
    // 24 zeros are a tensor without a name, 13 zeros are metadata, and 8 zeros are a text.
    expect(await refusal(behind({ tensorCount: 2n ** 50n }, 2 ** 23))).toBe(found);
    expect(await refusal(behind({ metadataCount: 2n ** 50n }, 2 ** 23))).toMatch('repeats');
    const metadata = [['a', 'list', ['text', [], 2 ** 20]]] as const;
    const { metadata: whole } = await readGGUF(behind({ metadata }, 2 ** 23));
    expect((whole.get('a') as string[]).length).toBe(2 ** 20);
    const second = encodeGGUF({ metadata: [['b', 'list', ['text', [], 2 ** 20]]] }).slice(24);
    expect(await refusal(behind({ metadata, metadataCount: 2 }, 2 ** 23, second))).toBe(found);
  });
});
