/** The steps of a model: nodes, and products with the nodes around them. Values have numbers. */
import type { ProductCall, ProductWeights } from '../graph/products.js';
import type { Run } from '../operators/operator.js';
import type { Stored } from '../operators/storage.js';
import type { OnnxNode } from '../read/model.js';
import type { PlannedStep, ProductLink } from './plan.js';

/** @internal The steps of a model, and the numbers of their inputs and outputs. */
export interface Steps {
  readonly steps: readonly Step[];
  /** Values at the start of a run, by number. */
  readonly start: readonly (Stored | undefined)[];
  readonly feeds: readonly number[];
  readonly outputs: readonly number[];
}

/** @internal A step, with names replaced by their numbers; `absent` stands for an absent one. */
export interface Step {
  readonly node: OnnxNode;
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  /** The names whose values end after this step. */
  readonly ends: readonly number[];
  readonly run: Run | undefined;
  readonly product: ProductStep | undefined;
  /** For a fused node: the steps that run instead, if it refuses its operands. Otherwise none. */
  readonly originals: readonly Step[];
  /** For an If, whose first input is the condition: the steps if it is true, and otherwise. */
  readonly branches?: readonly (readonly Step[])[] | undefined;
}

/** @internal A step before `withEnds`. */
export type OpenStep = Omit<Step, 'ends' | 'originals' | 'branches'> & {
  readonly originals: readonly OpenStep[];
  readonly branches: readonly (readonly OpenStep[])[] | undefined;
};

/** @internal The number of a name that is absent. */
export const absent = -1;
/** @internal The number of the result of the product, or of the link before. */
export const theResult = -2;

/** @internal A product with the nodes around it. */
export interface ProductStep {
  readonly call: ProductCall;
  readonly weights: ProductWeights | undefined;
  readonly views: PlannedStep['views'];
  readonly links: readonly StepLink[];
}

interface StepLink {
  readonly link: ProductLink;
  /** Its inputs; `theResult` stands for the result of the product or link before it. */
  readonly inputs: readonly number[];
  /** For a bias, the number of its name. */
  readonly other: number;
}

/**
 * @internal Adds to each step the names that no later step takes.
 *
 * @param isLater by number: whether something after these steps takes the name
 * @param lastEnds names that the last step ends, too
 */
export function withEnds(
  steps: readonly OpenStep[],
  isLater: Uint8Array,
  lastEnds: readonly number[] = [],
): Step[] {
  const reversed: Step[] = [];
  for (const step of [...steps].reverse()) {
    const ends = reversed.length === 0 ? [...lastEnds] : [];
    const linked = step.product?.links.flatMap(({ inputs }) => inputs) ?? [];
    // A node before the step may make them, too.
    const made = step.originals.flatMap(({ outputs }) => outputs);
    for (const number of [...step.inputs, ...linked, ...step.outputs, ...made]) {
      if (number < 0 || isLater[number]) continue;
      isLater[number] = 1;
      ends.push(number);
    }
    // If other steps run instead, the last of them ends what the step would end.
    const branches = step.branches?.map((branch) => withEnds(branch, isLater.slice(), ends));
    reversed.push({ ...step, ends, originals: withEnds(step.originals, isLater, ends), branches });
  }
  return reversed.reverse();
}
