/** readSafetensors: what a header says, and what is refused. */
import { describe, expect, it } from 'vitest';
import { readSafetensors, type WeightsSource } from 'wgemm/weights';
import { encodeSafetensors, type SafetensorsSpec } from '../../fuzz/weights-files.mjs';
import { expectError, rejected } from '../support/errors.js';

const read = (file: SafetensorsSpec) => readSafetensors(encodeSafetensors(file));

async function refusal(source: unknown): Promise<string> {
  const error = await rejected(readSafetensors(source as WeightsSource));
  expectError(error, { code: 'ARGUMENT', op: 'readSafetensors', argument: 'source', says: [] });
  const start = 'readSafetensors: source is not a file of safetensors: it ';
  return (error as Error).message.replace(start, '');
}

const refusalOf = (file: SafetensorsSpec) => refusal(encodeSafetensors(file));

/** The refusal of a header with tensor "w", in a file with `length` bytes of data. */
function refusalOfTensor(tensor: unknown, length = 8): Promise<string> {
  const bytes = encodeSafetensors({ header: { w: tensor } });
  const whole = new Uint8Array(bytes.length + length);
  whole.set(bytes);
  return refusal(whole);
}

const data = Uint8Array.from({ length: 16 }, (_, i) => i);
const valid = { dtype: 'F32', shape: [2], data_offsets: [0, 8] };

describe('a header', () => {
  it('has metadata and tensors', async () => {
    const file = await read({
      metadata: { format: 'pt', __proto__: '' },
      tensors: [
        { name: 'a', dtype: 'BF16', shape: [2, 4], data },
        { name: '7', dtype: 'F32', shape: [], data: data.slice(0, 4) },
        { name: '__proto__', dtype: 'U8', shape: [3], data: data.slice(0, 3) },
      ],
    });
    expect(Array.from(file.metadata)).toEqual([['format', 'pt']]);
    const start = file.tensors.get('a')?.offset ?? NaN;
    // In the order of the data, though engines list keys that are numbers first.
    expect(Array.from(file.tensors.values())).toEqual([
      { name: 'a', type: 'BF16', shape: [2, 4], offset: start, byteLength: 16 },
      { name: '7', type: 'F32', shape: [], offset: start + 16, byteLength: 4 },
      { name: '__proto__', type: 'U8', shape: [3], offset: start + 20, byteLength: 3 },
    ]);
    expect((await file.tensor('__proto__')).data).toEqual(Uint8Array.of(0, 1, 2));
    expect(Object.isFrozen(file.tensors.get('a'))).toBe(true);
  });

  it('has tensors of every type', async () => {
    const { buffer } = data;
    const arrays = [
      ['F64', 'float64', new Float64Array(buffer)],
      ['F32', 'float32', new Float32Array(buffer)],
      ['BF16', 'bfloat16', new Uint16Array(buffer)],
      ['I64', 'int64', new BigInt64Array(buffer)],
      ['I32', 'int32', new Int32Array(buffer)],
      ['I16', 'int16', new Int16Array(buffer)],
      ['I8', 'int8', new Int8Array(buffer)],
      ['U64', 'uint64', new BigUint64Array(buffer)],
      ['U32', 'uint32', new Uint32Array(buffer)],
      ['U16', 'uint16', new Uint16Array(buffer)],
      ['U8', 'uint8', new Uint8Array(buffer)],
      ['BOOL', 'uint8', new Uint8Array(buffer)],
    ] as const;
    for (const [type, dtype, array] of arrays) {
      // Behind one byte, so that elements are not aligned.
      const file = await read({
        tensors: [
          { name: 'byte', dtype: 'U8', shape: [1], data: Uint8Array.of(1) },
          { name: 'w', dtype: type, shape: [array.length], data },
        ],
      });
      const tensor = await file.tensor('w');
      expect(tensor).toMatchObject({ name: 'w', type, dtype, shape: [array.length], data: array });
    }
    const file = await read({ tensors: [{ name: 'w', dtype: 'F16', shape: [8], data }] });
    const half = await file.tensor('w');
    expect(half).toMatchObject({ type: 'F16', dtype: 'float16' });
    expect(half.toFloat32().data[4]).toBe((1024 + 0x108) * 2 ** (2 - 25));
  });

  it('lists types that cannot be loaded', async () => {
    const file = await read({
      tensors: [
        { name: 'f8', dtype: 'F8_E4M3', shape: [16], data },
        { name: 'f4', dtype: 'F4', shape: [32], data },
      ],
    });
    expect(file.tensors.get('f4')).toMatchObject({ type: 'F4', byteLength: 16 });
    for (const name of ['f8', 'f4']) {
      const error = await rejected(file.tensor(name));
      const says = ['which is not supported; its bytes are at offset and byteLength'];
      expectError(error, { code: 'DTYPE', op: 'readSafetensors', argument: 'name', says });
    }
  });

  it('may be followed by spaces, and by nothing', async () => {
    const file = await read({ header: `${JSON.stringify({})}      ` });
    expect([file.tensors.size, file.metadata.size]).toEqual([0, 0]);
    const error = await rejected(file.tensor('w'));
    const says = ['name is "w"; it must be the name of a tensor of the file'];
    expectError(error, { code: 'ARGUMENT', op: 'readSafetensors', argument: 'name', says });
  });
});

describe('refused', () => {
  it('other formats', async () => {
    expect(await refusal(new Uint8Array())).toBe('is an empty file');
    expect(await refusal(new TextEncoder().encode('GGUF\0\0\0\0\0\0\0\0\0'))).toBe('is GGUF');
    expect(await refusal(new Uint8Array(20))).toBe('has no "{" at 8');
    expect(await refusalOf({ header: '[]' })).toBe('has no "{" at 8');
  });

  it('lengths of the header beyond the file, and beyond the limit', async () => {
    for (const length of [3, 2 ** 20, 2n ** 53n, 2n ** 64n - 1n])
      expect(await refusalOf({ length })).toMatch(/^ends within its header, at 10$/);
    let reads = 0;
    const source = (_: number, length: number) => {
      ++reads;
      const bytes = new Uint8Array(length).fill(0x20);
      bytes.set(encodeSafetensors({ length: 2 ** 27 }));
      return bytes;
    };
    expect(await refusal(source)).toMatch('has a header of more than 134217728 bytes');
    expect(reads).toBe(1);
  });

  it('JSON that is malformed, or has too many values', async () => {
    for (const header of ['{ ', '{]', '{"a":}', '{"a":1}}', '{} x', '{\0}'])
      expect(await refusalOf({ header })).toBe('has a header that is not a JSON object');
    expect(await refusalOf({ header: `{"a":${'['.repeat(2 ** 20)}` })).toMatch('not a JSON object');
    expect(await refusalOf({ header: `{"a":[${'[],'.repeat(2 ** 21)}[]]}` })).toBe(
      'has more than 4194304 values in its header, which is the limit',
    );
  });

  it('metadata that are not texts', async () => {
    for (const __metadata__ of [{ a: 1 }, { a: null }, 'a', null, ['a']])
      expect(await refusal(encodeSafetensors({ header: { __metadata__ } }))).toBe(
        'has metadata that are not texts',
      );
  });

  it('descriptions of tensors that are not valid', async () => {
    for (const tensor of [null, 1, 'w', [], {}, { ...valid, dtype: 1 }, { ...valid, dtype: null }])
      expect(await refusalOfTensor(tensor)).toBe('has tensor "w" without a dtype');
    for (const shape of [null, 2, '2', [2.5], [-2], ['2'], [2 ** 53], Array(65).fill(1)])
      expect(await refusalOfTensor({ ...valid, shape })).toMatch(
        'without a shape of up to 64 sizes',
      );
    for (const data_offsets of [null, 8, [8], [8, 0], [-8, 0], [0, 8.5], ['0', '8'], [0, 2 ** 53]])
      expect(await refusalOfTensor({ ...valid, data_offsets })).toBe(
        'has tensor "w" without valid data_offsets',
      );
  });

  it('sizes that do not match', async () => {
    expect(await refusalOfTensor({ ...valid, shape: [3] })).toBe(
      'has tensor "w" of 8 bytes; shape [3] of F32 needs 12',
    );
    expect(await refusalOfTensor({ ...valid, shape: [2 ** 40, 2 ** 40] })).toMatch(
      'which has more than 2^53 bytes',
    );
    const zero = { ...valid, shape: [0, 2 ** 50, 2 ** 50], data_offsets: [0, 0] };
    expect(await refusalOfTensor(zero)).toMatch('and its tensors end at');
  });

  it('tensors that overlap, leave gaps, or are not in the file', async () => {
    const two = (a: number[], b: number[], length: number) => {
      const tensors = [a, b].map((data_offsets, i) => [
        `w${i}`,
        { dtype: 'U8', shape: [(data_offsets[1] ?? 0) - (data_offsets[0] ?? 0)], data_offsets },
      ]);
      const bytes = encodeSafetensors({ header: Object.fromEntries(tensors) });
      const whole = new Uint8Array(bytes.length + length);
      whole.set(bytes);
      return readSafetensors(whole);
    };
    const message = async (...parts: Parameters<typeof two>) =>
      ((await rejected(two(...parts))) as Error).message;
    await two([0, 8], [8, 16], 16);
    await two([8, 16], [0, 8], 16);
    await two([0, 8], [8, 8], 8);
    await two([0, 0], [0, 8], 8);
    expect(await message([0, 8], [7, 16], 16)).toMatch(/"w1" at \d+, within another that ends at/);
    expect(await message([0, 16], [4, 8], 16)).toMatch(/"w1" at \d+, within another that ends at/);
    expect(await message([0, 8], [9, 16], 16)).toMatch('has a gap before tensor "w1"');
    expect(await message([1, 8], [8, 16], 16)).toMatch('has a gap before tensor "w0"');
    expect(await message([0, 8], [8, 16], 15)).toMatch(/"w1" at \d+, which ends at \d+; the file/);
    expect(await message([0, 8], [8, 16], 17)).toMatch(/has \d+ bytes, and its tensors end at/);
    expect(await message([0, 8], [8, 2 ** 53 - 1], 16)).toMatch('beyond 2^53 bytes');
  });
});
