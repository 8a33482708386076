/**
 * Computes the rows of tests/native/nn_hashes.json in WebAssembly: each operator of src/nn/ with
 * each of its types. nn_hashes_test.cc explains the rows, and computes them natively.
 */
import rows from '../../native/nn_hashes.json' with { type: 'json' };
import { dtypesOf, type Glue, operatorsOf, textAt } from './glue.js';

/** By type: the bytes of an element, the bits of infinity, and the lowest bit of the exponent. */
const types: Readonly<Record<string, readonly [bytes: number, infinity?: bigint, quiet?: bigint]>> =
  {
    float32: [4, 0x7f800000n, 1n << 22n],
    float64: [8, 0x7ffn << 52n, 1n << 51n],
    float16: [2, 0x7c00n, 1n << 9n],
    bfloat16: [2, 0x7f80n, 1n << 6n],
    int32: [4],
    uint32: [4],
    int64: [8],
    uint64: [8],
    int8: [1],
    uint8: [1],
  };

interface Operand {
  readonly type: string;
  readonly count: number;
  readonly fill: string;
  readonly strides: readonly number[];
  readonly bytes: number;
  readonly sign: bigint;
  readonly infinity?: bigint | undefined;
  readonly quiet?: bigint | undefined;
}

const listOf = (text: string): number[] => text.slice(1, -1).split(',').map(Number);

/** The parts of a row. */
function read(row: string) {
  const [name, sizes, ...rest] = row.split(' ') as [string, string, ...string[]];
  const hash = rest.pop()!;
  const operands = rest
    .filter((part) => part.includes(':'))
    .map((part): Operand => {
      const [type, count, fill, strides] = /(\w+):(\d+):(\w+)(.*)/.exec(part)!.slice(1) as [
        ...[string, string, string, string],
      ];
      const [bytes, infinity, quiet] = types[type]!;
      const sign = 1n << BigInt(8 * bytes - 1);
      return { type, count: +count, fill, strides: listOf(strides), bytes, sign, infinity, quiet };
    });
  const attributes = rest.filter((part) => !part.includes(':')).map(Number);
  return { name, sizes: listOf(sizes), operands, attributes, hash };
}

const bits = new DataView(new ArrayBuffer(8));
const single = (value: number): number => (bits.setFloat32(0, value), bits.getUint32(0));
const double = (value: number): bigint => (bits.setFloat64(0, value), bits.getBigUint64(0));

/** The bits of element `i` of a tensor, of a random number of 32 bits. */
function element(
  { type, fill, sign, infinity }: Operand,
  tensor: number,
  i: number,
  random: number,
): bigint | number {
  const whole = random | 0;
  if (fill === 'b') return random >>> 31;
  if (fill === 'p') {
    const part = random >>> 25;
    if (type === 'float32') return single((part + 128) / 4096);
    if (type === 'float64') return double((part + 128) / 4096);
    return type === 'float16' ? (10 << 10) | (part << 3) : (122 << 7) | part;
  }
  if (fill.startsWith('c')) return Number(fill.slice(1));
  if (fill !== 's' && fill !== 'r') return ((random >>> 8) % (2 * Number(fill))) - Number(fill);
  if (fill === 's' && infinity !== undefined) {
    const special = [sign, infinity, sign | infinity, 1n, infinity - 1n][i % (29 + 2 * tensor)];
    if (special !== undefined) return special;
  }
  switch (type) {
    case 'float32':
      return single((whole >> 8) / 2 ** 20);
    case 'bfloat16':
      return single((whole >> 8) / 2 ** 20) >>> 16;
    case 'float64':
      return double(whole / 2 ** 28);
    case 'float16':
      return (
        ((random >>> 31) << 15) | ((8 + ((random >>> 24) % 10)) << 10) | ((random >>> 8) % 1024)
      );
    case 'int64':
    case 'uint64':
      return (BigInt(random) << 32n) | BigInt((Math.imul(random, 5) + 1) >>> 0);
    case 'int8':
    case 'uint8':
      return random >>> 24;
    default:
      return random;
  }
}

function fill(operand: Operand, tensor: number, to: DataView): void {
  const { bytes, count } = operand;
  let random = tensor + 1;
  for (let i = 0; i < count; ++i) {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    const value = element(operand, tensor, i, random);
    const at = i * bytes;
    if (bytes === 8) to.setBigUint64(at, BigInt(value), true);
    else if (bytes === 4) to.setUint32(at, Number(value), true);
    else if (bytes === 2) to.setUint16(at, Number(value), true);
    else to.setUint8(at, Number(value));
  }
}

/** FNV-1a over elements. Each NaN counts as the canonical one. */
function addHash(hash: number, { bytes, sign, infinity, quiet }: Operand, from: DataView): number {
  for (let at = 0; at < from.byteLength; at += bytes) {
    if (infinity !== undefined) {
      const value =
        bytes === 8
          ? from.getBigUint64(at, true)
          : BigInt(bytes === 4 ? from.getUint32(at, true) : from.getUint16(at, true));
      if ((value & ~sign) > infinity) {
        const canonical = infinity | quiet!;
        for (let i = 0; i < bytes; ++i)
          from.setUint8(at + i, Number((canonical >> BigInt(8 * i)) & 255n));
      }
    }
    for (let i = 0; i < bytes; ++i) hash = Math.imul(hash ^ from.getUint8(at + i), 16777619);
  }
  return hash;
}

/** Computes every row. Returns the rows whose hash differs. */
export function wrongRows(glue: Glue): string[] {
  const operators = operatorsOf(glue);
  const dtypes = dtypesOf(glue);
  const check = (code: number) => {
    if (code !== 0) throw new Error(textAt(glue, glue.errorMessage()));
  };
  return rows.filter((row) => {
    const { name, sizes, operands, attributes, hash: expected } = read(row);
    const addresses = operands.map(({ count, bytes }) => glue.allocate(count * bytes));
    const tensors = operands.flatMap(({ type, strides }, i) => [
      dtypes.indexOf(type),
      addresses[i]!,
      ...strides,
    ]);
    const body = [sizes.length, ...sizes, ...tensors, ...attributes];
    const words = Float64Array.of(operators.indexOf(name), 0, body.length, ...body);
    const place = glue.allocate(words.byteLength);
    const viewOf = ({ count, bytes }: Operand, i: number) =>
      new DataView(glue.HEAPU8.buffer, addresses[i], count * bytes);
    operands.forEach((operand, i) => {
      fill(operand, i, viewOf(operand, i));
    });
    new Float64Array(glue.HEAPU8.buffer, place, words.length).set(words);
    check(glue.makeProgram(place, words.length));
    const program = new Float64Array(glue.HEAPU8.buffer, glue.block(), 1)[0]!;
    check(glue.runProgram(program, 0, 1));
    glue.dropProgram(program);
    let hash = 2166136261;
    operands.forEach((operand, i) => {
      hash = addHash(hash, operand, viewOf(operand, i));
    });
    for (const address of [...addresses, place]) glue.release(address);
    return (hash >>> 0).toString(16).padStart(8, '0') !== expected;
  });
}
