/** A product of a model: its operands, and the other nodes that its call computes. */
import { contiguousStrides } from '../../base/layout.js';
import type { DataArray } from '../../base/tensor.js';
import type { Explanation } from '../../ops/explain.js';
import type { Extra, ProductCall, ProductOperand, Shaped } from '../graph/products.js';
import { keyOf } from '../operators/operator.js';
import { permOf } from '../operators/shapes.js';
import { sizeOf, type Stored } from '../operators/storage.js';
import { stridesOf } from './gaps.js';
import type { ModelProduct } from './model.js';
import type { PlannedStep, ProductLink } from './plan.js';
import { absent, type ProductStep, type Step } from './steps.js';

type Values = readonly (Stored | undefined)[];

/** A Transpose whose input a product reads by strides. */
interface Turned {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

/** @internal How a product is called for these operands. */
export class PlannedProduct {
  /** The type and the shape that the call returns, before a Transpose. */
  readonly #plain: Shaped;
  /** The inputs of the product, after a Transpose. */
  readonly #shapes: readonly (Shaped | undefined)[];
  /** How many of the links the call computes. */
  readonly fused: number;
  readonly #inputs: Values;
  readonly #turned: readonly (Turned | undefined)[];
  readonly #extra: Extra = Object.create(null) as Extra; // a page may pollute Object.prototype
  /** The number of the bias that the call adds. */
  readonly #bias: number = absent;
  /** The perm of the Transpose that the call computes. */
  readonly #perm: readonly number[] | undefined;

  /** @param refuse throws the error of a Transpose whose perm is wrong */
  constructor(
    readonly product: ProductStep,
    inputs: Values,
    readonly values: Values,
    refuse: (turn: NonNullable<ReturnType<PlannedStep['views']['get']>>, input: Stored) => void,
  ) {
    const { call, weights, links, views } = product;
    this.#inputs = inputs;
    this.#turned = inputs.map((value, i) => {
      const turn = views.get(i);
      const strides = value && (turn || value.root.gap) && stridesOf(value);
      if (!strides) return undefined;
      const { shape } = value;
      const perm = turn ? permOf(turn.node, shape) : [...shape.keys()];
      if (turn && perm.length !== shape.length) refuse(turn, value);
      const along = (list: readonly number[]) => perm.map((axis) => list[axis] as number);
      return { shape: along(shape), strides: along(strides) };
    });
    this.#shapes = inputs.map(
      (input, i) => input && { dtype: input.dtype, shape: this.#turned[i]?.shape ?? input.shape },
    );
    const plain = call.result(this.#shapes, weights);
    this.#plain = plain;
    const next = links.findIndex(({ link, other }) => !canFuse(link, call, plain, values[other]));
    this.fused = next < 0 ? links.length : next;
    for (const { link, other } of links.slice(0, this.fused)) {
      if (link.kind === 'alpha') this.#extra.alpha = link.alpha;
      else if (link.kind === 'bias') this.#bias = other;
      else if (link.kind === 'activation') this.#extra.activation = link.activation;
      else this.#perm = permOf(link.checked.node, plain.shape);
    }
  }

  /** The type and the shape of the result. */
  get result(): Shaped {
    const { dtype, shape } = this.#plain;
    return { dtype, shape: this.#perm?.map((axis) => shape[axis] as number) ?? shape };
  }

  /** The bias, if the call may add to it where it is, after its last use. */
  takenBias(ends: readonly number[]): Stored | undefined {
    const { call } = this.product;
    const bias = this.values[this.#bias];
    // Calls other than gemm and matmul refuse a bias in the memory of the result.
    const isTaken =
      call.fuses.bias === 'any' &&
      bias?.root.isOwn &&
      bias.root.uses === 1 &&
      (bias.root.chunk ?? bias.root.isOpen) &&
      !this.#perm &&
      ends.includes(this.#bias) &&
      bias.dtype === this.#plain.dtype &&
      sameShape(bias.shape, this.#plain.shape) &&
      !this.#inputs.some((input) => input?.root === bias.root);
    return isTaken ? bias : undefined;
  }

  /**
   * The arguments of the call.
   *
   * @param dataOf the elements of an operand, where the product reads them
   */
  argumentsFor(result: Stored, dataOf: (value: Stored) => DataArray): unknown[] {
    const { call, weights } = this.product;
    // All operands have the same properties: engines read them faster.
    const operandOf = (value: Stored | undefined, turned?: Turned): ProductOperand | undefined =>
      value && {
        dtype: value.dtype,
        shape: turned?.shape ?? value.shape,
        data: dataOf(value),
        strides: turned?.strides,
      };
    const extra = this.#extra;
    const bias = operandOf(this.values[this.#bias]);
    if (bias)
      extra.bias = call.fuses.bias === 'columns' ? { ...bias, shape: [sizeOf(bias.shape)] } : bias;
    const { dtype, shape } = this.#plain;
    const strides = this.#perm && stridesThrough(shape, this.#perm);
    extra.out = { dtype, shape, data: result.elements, strides };
    const operands = this.#inputs.map((input, i) => operandOf(input, this.#turned[i]));
    return call.arguments(operands, weights, extra);
  }

  /** The product as `explain` of the model reports it. */
  describe(step: Step, plan: Explanation, time: number): ModelProduct {
    const { call, weights } = step.product as ProductStep;
    const operands = [this.#shapes[call.a], weights ?? this.#shapes[call.b], this.#plain];
    return {
      ...namesOf(step, this.fused),
      operands: operands.flatMap((one) => (one ? { dtype: one.dtype, shape: one.shape } : [])),
      packed: weights !== undefined,
      plan,
      time,
    };
  }
}

/**
 * @internal The node of a step, and the operators of the other nodes that the step computes.
 *
 * @param linked how many of the links after a product count
 */
export function namesOf(
  { node: own, originals, product }: Step,
  linked = Infinity,
): Pick<ModelProduct, 'node' | 'op' | 'fused'> {
  const links = product?.links ?? [];
  // The model does not have a fused node: it has the original nodes, and links follow these.
  const replaced = originals.slice(0, originals.length - links.length);
  const node = replaced.find(({ product }) => product)?.node ?? own;
  const joined = [...replaced, ...links.slice(0, linked).map(({ link }) => link.checked)];
  return {
    node: node.name || (node.outputs[0] as string),
    op: keyOf(node),
    fused: joined.filter((one) => one.node !== node).map((one) => keyOf(one.node)),
  };
}

const sameShape = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((size, axis) => size === b[axis]);

/** Whether the call of a product can also compute a link, with the same elements. */
function canFuse(
  link: ProductLink,
  { fuses }: ProductCall,
  { dtype, shape }: Shaped,
  other: Stored | undefined,
): boolean {
  if (link.dtypes.some((other) => other !== dtype)) return false;
  const isExact = dtype === 'float32' || dtype === 'float64';
  switch (link.kind) {
    case 'alpha':
      return isExact && link.rank <= shape.length;
    case 'bias':
      return isExact && other?.dtype === dtype && addsTo(shape, other, fuses.bias === 'columns');
    case 'activation':
      return isExact; // a negative sum may round to -0 in 16 bits, which Relu keeps
    case 'transpose':
      return permOf(link.checked.node, shape).length === shape.length;
  }
}

/** Whether a bias broadcasts to the result. `isRow`: it must have one element per column. */
function addsTo(shape: readonly number[], bias: Stored, isRow: boolean): boolean {
  const first = shape.length - bias.shape.length;
  if (first < 0) return false;
  if (isRow && (bias.size !== shape.at(-1) || bias.shape.at(-1) !== bias.size)) return false;
  return bias.shape.every((size, axis) => size === 1 || size === shape[first + axis]);
}

/** The strides of a tensor whose transpose by `perm` is contiguous. */
function stridesThrough(shape: readonly number[], perm: readonly number[]): number[] {
  const strides: number[] = [];
  contiguousStrides(perm.map((axis) => shape[axis] as number)).forEach((stride, i) => {
    strides[perm[i] as number] = stride;
  });
  return strides;
}
