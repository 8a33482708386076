/** M, N and K as the visitor sets them, and the curve that goes through them. */
import type { Size } from '../engine/size.ts';

export type Axis = 'm' | 'n' | 'k';
export const axes: readonly Axis[] = ['m', 'n', 'k'];

/** Each of M, N and K is from 1 to this. */
export const largest = 2048;

/** The sizes that a slider has: eight per octave, as far as they differ. */
export const steps: readonly number[] = [
  ...new Set(Array.from({ length: 89 }, (_, i) => Math.round(2 ** (i / 8)))),
];

const clamp = (value: number) => Math.min(Math.max(Math.round(value), 1), largest);

/** The step of a slider that is nearest to a size. */
export const stepOf = (size: number): number =>
  steps.reduce((best, step, i) => (ratio(step, size) < ratio(steps[best]!, size) ? i : best), 0);

const ratio = (a: number, b: number) => Math.max(a / b, b / a);

/** Along the curve: first few sizes, far apart, then those between them. */
const coarse = [1, 16, 256, 4, 64, 1024, 2, 8, 32, 128, 512, 2048];
const fine = [192, 768, 48, 384, 96, 1536, 24, 12, 6, 3];

export interface Curve {
  /** Curves with the same key go through the same products. */
  key: string;
  /** What the axis of sizes is called. */
  title: string;
  /** Where the chosen sizes are on it. */
  x: number;
}

export class Sizes {
  /** Before they are rounded, so that sizes that move together keep their proportions. */
  private readonly exact: Record<Axis, number> = { m: 256, n: 256, k: 256 };
  readonly locked: Record<Axis, boolean> = { m: true, n: true, k: true };
  private touched: Axis = 'm';

  get(axis: Axis): number {
    return clamp(this.exact[axis]);
  }

  /** Sets a size. If it is locked, the others that are locked change by the same factor. */
  set(axis: Axis, size: number): void {
    const factor = size / Math.max(this.exact[axis], 1);
    this.touched = axis;
    for (const other of this.moved()) this.exact[other] *= factor;
    this.exact[axis] = size;
  }

  toggle(axis: Axis): void {
    this.locked[axis] = !this.locked[axis];
    // A lock alone has nothing to move with, so the sizes that are locked lead.
    const isLocked = axes.some((other) => this.locked[other]);
    if (isLocked && !this.locked[this.touched] && axis === this.touched)
      this.touched = axes.find((other) => this.locked[other])!;
    else if (this.locked[axis]) this.touched = axis;
  }

  /** Sizes that were pushed beyond the end stay there: they lose their proportions. */
  settle(): void {
    if (axes.every((axis) => this.exact[axis] <= largest)) return;
    for (const axis of axes) this.exact[axis] = this.get(axis);
  }

  /** The sizes that change together now. */
  moved(): Axis[] {
    return this.locked[this.touched] ? axes.filter((axis) => this.locked[axis]) : [this.touched];
  }

  curve(): Curve {
    const { lead, moved, parts } = this.shape();
    const still = axes.filter((axis) => !moved.includes(axis));
    const name = (axis: Axis) => axis.toUpperCase();
    const isEqual = moved.every((axis) => parts[axis] === 1);
    const others = moved.filter((axis) => axis !== lead).map(name);
    return {
      key: axes
        .map((axis) => (moved.includes(axis) ? `x ${parts[axis]}` : `${this.get(axis)}`))
        .join(','),
      title:
        (isEqual ? moved.map(name).join(' = ') : `${name(lead)}, with ${others.join(' and ')}`) +
        (isEqual ? '' : ' in proportion') +
        still.map((axis, i) => `${i ? ' and' : ', at'} ${name(axis)} = ${this.get(axis)}`).join(''),
      x: this.get(lead),
    };
  }

  /** The sizes to measure, in order: the chosen ones, then all on the curve that are not known. */
  toMeasure(known: ReadonlySet<number>): Size[] {
    const { lead, moved, parts } = this.shape();
    const [m, n, k] = axes.map((axis) => this.get(axis));
    const chosen: Size = { x: this.get(lead), m: m!, n: n!, k: k!, isFine: false };
    const at = (x: number, isFine: boolean): Size => {
      const [m, n, k] = axes.map((axis) =>
        moved.includes(axis) ? clamp(parts[axis] * x) : this.get(axis),
      );
      return { x, m: m!, n: n!, k: k!, isFine };
    };
    return [chosen, ...coarse.map((x) => at(x, false)), ...fine.map((x) => at(x, true))].filter(
      ({ x }, i) => !known.has(x) && (i === 0 || x !== chosen.x),
    );
  }

  /** The largest of the sizes that move leads, and the others are parts of it. */
  private shape(): { lead: Axis; moved: Axis[]; parts: Record<Axis, number> } {
    const moved = this.moved();
    const most = Math.max(...moved.map((axis) => this.exact[axis]));
    const parts = { m: 0, n: 0, k: 0 };
    for (const axis of moved) parts[axis] = Number((this.exact[axis] / most).toPrecision(6));
    return { lead: moved.find((axis) => parts[axis] === 1)!, moved, parts };
  }
}
