/** Types of onnx.mjs, for the tests in TypeScript. */
import type { DataArray, DType } from 'wgemm';

interface Value {
  name: string;
  dtype: DType;
  shape?: readonly number[];
  data?: DataArray;
}

export function encodeModel(op: {
  type: string;
  domain?: string;
  opset?: number;
  attributes?: object;
  inputs: readonly (Value | null)[];
  output: Omit<Value, 'name'>;
}): Uint8Array;

export interface OrtTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: DataArray;
}

export interface Session {
  run(feeds: Record<string, OrtTensor>): Promise<Record<'Y', OrtTensor>>;
}

export interface Ort {
  version: string;
  createSession(model: Uint8Array): Promise<Session>;
  tensor(value: { dtype: DType; shape: readonly number[]; data: DataArray }): OrtTensor;
}

export function loadOrt(options?: { threads?: number }): Promise<Ort>;
