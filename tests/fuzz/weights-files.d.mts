/** Types of weights-files.mjs, for the tests in TypeScript. */

export interface GGUFSpec {
  magic?: string;
  version?: number;
  alignment?: number;
  metadata?: readonly (readonly [key: string, type: string | number, value?: unknown])[];
  tensors?: readonly {
    name: string;
    ne: readonly (number | bigint)[];
    type: number;
    data: Uint8Array;
    offset?: number | bigint;
  }[];
  tensorCount?: number | bigint;
  metadataCount?: number | bigint;
}

export interface SafetensorsSpec {
  metadata?: Record<string, string>;
  tensors?: readonly {
    name: string;
    dtype: string;
    shape: readonly number[];
    data: Uint8Array;
  }[];
  header?: unknown;
  length?: number | bigint;
}

export function encodeGGUF(file: GGUFSpec): Uint8Array<ArrayBuffer>;
export function encodeSafetensors(file: SafetensorsSpec): Uint8Array<ArrayBuffer>;

/** Files for the fuzz test. */
export const corpus: readonly (
  readonly ['gguf', GGUFSpec] | readonly ['safetensors', SafetensorsSpec]
)[];
