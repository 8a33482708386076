/** Reads the programs of an instance: the words that js/onnx gives to the core. */
import { readdirSync, readFileSync } from 'node:fs';
import { dtypesOf, type Glue, operatorsOf } from './glue.js';

/** A tensor of a step. A product may have packed weights or a number in its place. */
export interface ProgramTensor {
  readonly kind: 'tensor' | 'packed' | 'number' | 'absent';
  readonly type: string;
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
  /** The address of the first element, or of packed weights. */
  readonly address: number;
  /** The bytes from the lowest element to the end of the highest one. */
  readonly start: number;
  readonly end: number;
  /** The value of a number. */
  readonly value?: number | undefined;
}

/** A step of a program. */
export interface ProgramStep {
  readonly name: string;
  /** The sizes of an operator's axes. Tensors of a product have sizes of their own. */
  readonly sizes: readonly number[];
  readonly inputs: readonly ProgramTensor[];
  readonly outputs: readonly ProgramTensor[];
  readonly attributes: readonly number[];
}

/** Products by their number, and how many words their attributes take: js/ops/operations.ts. */
const products = [
  ['gemm', 10],
  ['matmul', 7],
  ['product of 8 bits', 6],
  ['matmulNBits', 7],
  ['syrk', 3],
] as const;

const bytesOf = (type: string): number => Number(/\d+/.exec(type)![0]) / 8;

/** The numbers of inputs, outputs and attributes of each operator, from the tables of src/nn/. */
function readCounts(): Map<string, readonly number[]> {
  const folder = new URL('../../../src/nn/', import.meta.url);
  const counts = new Map<string, readonly number[]>();
  for (const file of readdirSync(folder)) {
    const text = readFileSync(new URL(file, folder), 'utf8');
    /** A number, or the last word of an enum, which counts the words before it. */
    const numberOf = (word: string) => {
      const [, before] = new RegExp(`enum [^{]*\\{([^}]*)\\b${word}\\b`).exec(text) ?? [];
      return before ? before.replace(/\/\/.*/g, '').split(',').length - 1 : Number(word);
    };
    for (const [, name, ...words] of text.matchAll(/\{"(\w+)", (\d), (\d), (\w+),/g))
      counts.set(name!, words.map(numberOf));
  }
  return counts;
}

/** Keeps the words of the programs of an instance, and where its memory was allocated. */
export class ProgramReader {
  /** The words of each program that was not dropped, in the order in which they were made. */
  programs: number[][] = [];
  readonly #blocks = new Map<number, number>();
  readonly #counts = readCounts();
  readonly #operators: readonly string[];
  readonly #types: readonly string[];

  constructor(readonly glue: Glue) {
    const { allocate, release, makeProgram, dropProgram } = glue;
    const byAddress = new Map<number, number[]>();
    this.#operators = operatorsOf(glue);
    this.#types = dtypesOf(glue);
    glue.allocate = (bytes) => {
      const address = allocate(bytes);
      this.#blocks.set(address, bytes);
      return address;
    };
    glue.release = (address) => {
      this.#blocks.delete(address);
      release(address);
    };
    glue.makeProgram = (words, count) => {
      const program = [...new Float64Array(glue.HEAPU8.buffer, words, count)];
      this.programs.push(program);
      const code = makeProgram(words, count);
      const [address] = new Float64Array(glue.HEAPU8.buffer, glue.block(), 1);
      if (code === 0) byAddress.set(address!, program);
      return code;
    };
    glue.dropProgram = (address) => {
      const program = byAddress.get(address);
      this.programs = this.programs.filter((each) => each !== program);
      dropProgram(address);
    };
  }

  /** The start of the allocated block that has an address. */
  blockOf(address: number): number {
    for (const [start, bytes] of this.#blocks)
      if (start <= address && address < start + Math.max(bytes, 1)) return start;
    throw new Error(`a program uses address ${address}, which is not allocated`);
  }

  stepsOf(words: readonly number[]): ProgramStep[] {
    const steps: ProgramStep[] = [];
    for (let at = 0; at < words.length; at += 3 + words[at + 2]!) {
      const body = words.slice(at + 3, at + 3 + words[at + 2]!);
      const number = words[at]!;
      steps.push(number < 0 ? this.#product(-1 - number, body) : this.#operator(number, body));
    }
    return steps;
  }

  #operator(number: number, [rank, ...body]: readonly number[]): ProgramStep {
    const name = this.#operators[number]!;
    const [inputs, outputs, attributes] = this.#counts.get(name)! as [number, number, number];
    const sizes = body.slice(0, rank);
    const length = 2 + rank!;
    const tensors = Array.from({ length: inputs + outputs }, (_, i) => {
      const at = rank! + i * length;
      const [type, address, ...strides] = body.slice(at, at + length) as [number, number];
      return this.#tensor(type, address, sizes, strides);
    });
    const rest = body.slice(rank! + tensors.length * length);
    if (name === 'Gather') {
      // The strides tell of the first index. The attributes are how many there are, and a stride.
      const data = tensors[0]!;
      const reach = (rest[0]! - 1) * rest[1]! * bytesOf(data.type);
      tensors[0] = { ...data, end: data.end + reach };
    }
    if (rest.length !== attributes) throw new Error(`${name} has ${rest.length} attributes`);
    return {
      name,
      sizes,
      inputs: tensors.slice(0, inputs),
      outputs: tensors.slice(inputs),
      attributes: rest,
    };
  }

  #product(number: number, body: readonly number[]): ProgramStep {
    const [name, length] = products[number]!;
    const tensors: ProgramTensor[] = [];
    for (let at: number = length; at < body.length;) {
      const [type, address, , rank, strides] = body.slice(at);
      const other = { type: '', sizes: [], strides: [], address: 0, start: 0, end: 0 };
      if (type === -1) {
        tensors.push({ ...other, kind: 'absent' });
        at += 1;
      } else if (type === -2) {
        tensors.push({ ...other, kind: 'packed', address: address! });
        at += 2;
      } else if (type === -3) {
        const value = body[at + 2];
        tensors.push({ ...other, kind: 'number', type: this.#types[address!]!, value });
        at += 4;
      } else {
        const sizes = body.slice(at + 5, at + 5 + rank!);
        const own = body.slice(at + 5 + rank!, at + 5 + rank! + strides!);
        let step = 1;
        const contiguous = sizes.map(() => 0);
        for (let axis = rank! - 1; axis >= 0; step *= sizes[axis--]!) contiguous[axis] = step;
        tensors.push(this.#tensor(type!, address!, sizes, strides ? own : contiguous));
        at += 5 + rank! + strides!;
      }
    }
    return {
      name,
      sizes: [],
      inputs: tensors.slice(0, -1),
      outputs: tensors.slice(-1),
      attributes: body.slice(0, length),
    };
  }

  #tensor(
    type: number,
    address: number,
    sizes: readonly number[],
    strides: readonly number[],
  ): ProgramTensor {
    const name = this.#types[type]!;
    const bytes = bytesOf(name);
    let [start, end] = [address, address + bytes];
    sizes.forEach((size, axis) => {
      const reach = (size - 1) * strides[axis]! * bytes;
      if (reach < 0) start += reach;
      else end += reach;
    });
    if (sizes.includes(0)) end = start;
    return { kind: 'tensor', type: name, sizes, strides, address, start, end };
  }
}
