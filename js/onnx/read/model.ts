/** A model as `readOnnx` returns it: plain data, without anything that runs. */
import type { DataArray } from '../../base/tensor.js';
import type { OnnxDType } from './value.js';

/**
 * A type that ONNX has and wgemm has not. Elements of these types are not read. `'none'`: the model
 * states no type. `'other'`: the type is newer than this library, or the value is not a dense
 * tensor, such as a sequence.
 *
 * @category Models
 */
export type OnnxOtherDType =
  | 'none'
  | 'other'
  | 'int16'
  | 'uint16'
  | 'string'
  | 'complex64'
  | 'complex128'
  | 'float8e4m3fn'
  | 'float8e4m3fnuz'
  | 'float8e5m2'
  | 'float8e5m2fnuz'
  | 'uint4'
  | 'int4'
  | 'float4e2m1';

/**
 * A tensor that a model contains. If `dtype` is not `'bool'`, the calls of wgemm take it.
 *
 * @category Models
 */
export interface OnnxTensor {
  /** Its name in the model, or ''. */
  readonly name: string;
  /** The type of the elements. */
  readonly dtype: OnnxDType;
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /**
   * The elements, in row-major order. This is a view of the bytes of the model, or of its external
   * data, if they are aligned there. Otherwise it is a copy.
   */
  readonly data: DataArray;
}

/**
 * A tensor whose elements were not read, since wgemm has no such type.
 *
 * @category Models
 */
export interface OnnxUnreadTensor {
  /** Its name in the model, or ''. */
  readonly name: string;
  /** The type of the elements. */
  readonly dtype: OnnxOtherDType;
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /** Absent: the elements were not read. */
  readonly data: undefined;
}

/**
 * The value of an attribute. A whole number is a bigint only if it is beyond 2^53 - 1. `null`: an
 * attribute of a kind that this library does not read, such as a sparse tensor or a type.
 *
 * @category Models
 */
export type OnnxAttribute =
  | number
  | bigint
  | string
  | OnnxTensor
  | OnnxUnreadTensor
  | OnnxGraph
  | readonly (number | bigint)[]
  | readonly string[]
  | readonly (OnnxTensor | OnnxUnreadTensor)[]
  | readonly OnnxGraph[]
  | null;

/**
 * The declaration of an input, an output or a value between two nodes.
 *
 * @category Models
 */
export interface OnnxValueInfo {
  /** Its name. */
  readonly name: string;
  /** The type of the elements. */
  readonly dtype: OnnxDType | OnnxOtherDType;
  /**
   * The size of each axis, in elements. A string names a dynamic size, which is the same in all
   * places that have this name. `undefined`: any size. Without a shape, the rank may be any, too.
   */
  readonly shape: readonly (number | string | undefined)[] | undefined;
}

/**
 * A node of a graph: an operator with its inputs and outputs.
 *
 * @category Models
 */
export interface OnnxNode {
  /** Its name, or '': names of nodes are optional. */
  readonly name: string;
  /** The operator, such as `'MatMul'`. */
  readonly op: string;
  /** The domain of the operator: '' for operators of ONNX itself, which is also `'ai.onnx'`. */
  readonly domain: string;
  /** The names of the inputs, in the order of the operator. '' stands for an absent one. */
  readonly inputs: readonly string[];
  /** The names of the outputs, in the order of the operator. '' stands for an absent one. */
  readonly outputs: readonly string[];
  /** The attributes, by name. */
  readonly attributes: ReadonlyMap<string, OnnxAttribute>;
}

/**
 * A graph: its nodes, in the order of the model, and the names of what goes in and out.
 *
 * @category Models
 */
export interface OnnxGraph {
  /** Its name, or ''. */
  readonly name: string;
  /** The nodes. */
  readonly nodes: readonly OnnxNode[];
  /** The inputs. One that is also an initializer has a default value. */
  readonly inputs: readonly OnnxValueInfo[];
  /** The outputs. */
  readonly outputs: readonly OnnxValueInfo[];
  /** The declarations of other values. */
  readonly values: readonly OnnxValueInfo[];
  /** The constants, by name. */
  readonly initializers: ReadonlyMap<string, OnnxTensor | OnnxUnreadTensor>;
}

/**
 * A model. {@link readOnnx} returns it.
 *
 * @category Models
 */
export interface OnnxModel {
  /** The version of the format. */
  readonly irVersion: number;
  /** The program that made the model. */
  readonly producer: {
    /** Its name, or ''. */
    readonly name: string;
    /** Its version, or ''. */
    readonly version: string;
  };
  /** The version of each set of operators, by its domain: '' for the operators of ONNX itself. */
  readonly opsets: ReadonlyMap<string, number>;
  /** The graph. */
  readonly graph: OnnxGraph;
  /** The functions that the model defines, as `'domain.name'`. Their nodes are not read. */
  readonly functions: readonly string[];
  /** Notes of the producer about the model, by key. */
  readonly metadata: ReadonlyMap<string, string>;
}
