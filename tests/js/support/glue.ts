/** The glue of an instance: the functions of the module, which js/instance/glue.ts lists. */
import { createGemm, type CreateOptions, type Gemm } from 'wgemm';

/** The functions that tests call or replace. */
export interface Glue {
  readonly HEAPU8: Uint8Array<ArrayBuffer>;
  block: () => number;
  allocate: (bytes: number) => number;
  release: (address: number) => void;
  errorMessage: () => number;
  dtypeCount: () => number;
  dtypeName: (index: number) => number;
  makeProgram: (words: number, count: number) => number;
  runProgram: (program: number, first: number, end: number) => number;
  dropProgram: (program: number) => void;
  operatorName: (index: number) => number;
}

/** Makes an instance with the operators of models. Returns its glue, too. */
export async function createWithGlue(options?: CreateOptions): Promise<{ wg: Gemm; glue: Glue }> {
  let glue: Glue | undefined;
  // When the module starts, each of its functions becomes a property of the glue.
  Object.defineProperty(Object.prototype, 'makeProgram', {
    configurable: true,
    set(this: Glue, value: unknown) {
      glue = this; // eslint-disable-line @typescript-eslint/no-this-alias
      const property = { value, writable: true, enumerable: true, configurable: true };
      Object.defineProperty(this, 'makeProgram', property);
    },
  });
  try {
    const wg = await createGemm({ ...options, models: true });
    return { wg, glue: glue! };
  } finally {
    Reflect.deleteProperty(Object.prototype, 'makeProgram');
  }
}

/** The zero-terminated text at an address. */
export function textAt({ HEAPU8 }: Glue, address: number): string {
  const bytes = HEAPU8.slice(address, HEAPU8.indexOf(0, address));
  return String.fromCharCode(...bytes);
}

/** The names of the operators of src/nn/, by number. */
export function operatorsOf(glue: Glue): string[] {
  const names: string[] = [];
  for (let address = glue.operatorName(0); address !== 0; address = glue.operatorName(names.length))
    names.push(textAt(glue, address));
  return names;
}

/** The names of the types, by number. */
export const dtypesOf = (glue: Glue): string[] =>
  Array.from({ length: glue.dtypeCount() }, (_, i) => textAt(glue, glue.dtypeName(i)));
