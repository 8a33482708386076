// Random numbers that are the same in every run.

/** Random numbers (mulberry32), for programs without TypeScript. */
export class Random {
  constructor(seed) {
    this.state = seed;
  }

  next() {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to `most`. */
  upTo(most) {
    return Math.floor(this.next() * (most + 1));
  }

  pick(values) {
    return values[this.upTo(values.length - 1)];
  }
}
