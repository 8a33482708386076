/** Computes operators at once, on elements that are known: each step is a program of its own. */
import { viewOfBytes } from '../../call/operand.js';
import type { Core } from '../../instance/core.js';
import { operatorsOf } from '../../instance/operators.js';
import type { Recorder, StepTensor } from '../operators/record.js';
import { elementBytes, sizeOf, Stored } from '../operators/storage.js';
import { type OnnxDType, storedAs, type Value } from '../read/value.js';
import { Words } from './words.js';

/** Where the elements of values begin: a line of a cache. */
const line = 64;

/** @internal Computes steps in an instance. */
export class Calculator implements Recorder {
  readonly records = false;
  /** The numbers of the operators of src/nn/, by name. */
  readonly operators: ReadonlyMap<string, number>;
  /** The numbers of types in the core. */
  readonly types: (dtype: OnnxDType) => number;
  readonly #words = new Words();

  constructor(readonly core: Core) {
    this.types = (dtype) => core.dtypes.indexOf(storedAs(dtype));
    this.operators = operatorsOf(core);
  }

  step(
    name: string,
    dims: readonly number[],
    tensors: readonly StepTensor[],
    attributes: readonly number[],
    results: number,
  ): boolean {
    if (name === 'Copy') return false; // which copies more to the instance and back
    const outputs = tensors.slice(-results).map(({ value }) => value);
    // Axes of results without elements may be of any size.
    if (outputs.every(({ shape }) => sizeOf(shape) === 0)) return true;
    const { core } = this;
    const places = new Map<Value, number>();
    let end = 0;
    for (const { value } of tensors) {
      if (places.has(value) || (value instanceof Stored && value.root.chunk)) continue;
      places.set(value, end);
      end += Math.ceil((sizeOf(value.shape) * elementBytes(value.dtype)) / line) * line;
    }
    const memory = core.guard('run', () => core.allocate(end || line, 'run'));
    try {
      for (const [value, place] of places)
        core.module.HEAPU8.set(viewOfBytes(value.data), memory + place);
      const addresses = tensors.map(({ value }) => {
        const place = places.get(value);
        return place === undefined ? value.data.byteOffset : memory + place;
      });
      const words = this.#words;
      words.length = 0;
      words.begin(this.operators.get(name) as number, 0);
      words.step(dims, tensors, addresses, attributes, this.types);
      this.#run();
      for (const value of outputs) {
        const start = memory + (places.get(value) as number);
        const bytes = viewOfBytes(value.data);
        bytes.set(core.module.HEAPU8.subarray(start, start + bytes.length));
      }
    } finally {
      if (!core.disposed) core.guard('run', () => core.module.release(memory));
    }
    return true;
  }

  #run(): void {
    const { core } = this;
    const program = core.makeProgram('run', this.#words.all);
    core.guard('run', () => {
      try {
        core.check(core.module.runProgram(program, 0, 1), 'run');
      } finally {
        core.module.dropProgram(program);
      }
    });
  }
}
