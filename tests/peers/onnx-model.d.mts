/** Types of onnx-model.mjs, for the tests in TypeScript. */
import type { DataArray } from 'wgemm';

export const dataTypes: Readonly<Record<string, number>>;

export interface TensorSpec {
  name?: string;
  dtype: string;
  shape: readonly number[];
  data?: DataArray;
  typed?: boolean;
  external?: { location?: string; offset?: number | string; length?: number | string };
}

export interface ValueSpec {
  name: string;
  dtype: string;
  shape?: readonly (number | string | undefined)[];
}

export type AttributeSpec =
  | number
  | bigint
  | string
  | readonly (number | bigint)[]
  | readonly string[]
  | { float: number }
  | { floats: readonly number[] }
  | { tensor: TensorSpec }
  | { graph: GraphSpec };

export interface NodeSpec {
  op: string;
  domain?: string;
  name?: string;
  inputs: readonly (string | null)[];
  outputs: readonly (string | null)[];
  attributes?: Readonly<Record<string, AttributeSpec>>;
}

export interface GraphSpec {
  name?: string;
  nodes: readonly NodeSpec[];
  inputs?: readonly ValueSpec[];
  outputs?: readonly ValueSpec[];
  initializers?: readonly TensorSpec[];
}

export interface ModelSpec extends GraphSpec {
  opsets?: Readonly<Record<string, number>>;
  irVersion?: number;
  metadata?: Readonly<Record<string, string>>;
}

/** Fields of a message, by their names in camelCase. */
export type Proto = Record<string, unknown>;

export function encodeProto(fields: Proto, type?: string): Uint8Array;
export function modelProto(model: ModelSpec): Proto & { graph: Record<string, Proto[]> };
export function encodeGraph(model: ModelSpec): Uint8Array;
