/** Numbers as the page shows them. */

/**
 * A whole number with commas, as 12,345. `toLocaleString()` loads the data of a language first,
 * which takes a slow phone 50 ms.
 */
export const whole = (value: number): string =>
  String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');

/** Three significant digits, as 1.23, 12.3 and 123. Below 1, two decimals. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-';
  if (value >= 99.95) return whole(value);
  return value.toFixed(value >= 9.995 ? 1 : 2);
}

/**
 * Seconds as ns, us, ms or s.
 *
 * @param column all times of a column. They get one unit: the largest in which none is below 0.1
 */
export function duration(seconds: number, column?: number[]): string {
  const deciding = column ? 10 * Math.min(...column) : seconds;
  if (deciding < 1e-6) return `${figure(seconds * 1e9)} ns`;
  if (deciding < 1e-3) return `${figure(seconds * 1e6)} \u00b5s`;
  if (deciding < 1) return `${figure(seconds * 1e3)} ms`;
  return `${figure(seconds)} s`;
}

/** Bytes as kB or MB, of 1,000 each. */
export function bytes(count: number): string {
  if (count < 1000) return `${count} bytes`;
  return count < 1e6 ? `${figure(count / 1e3)} kB` : `${figure(count / 1e6)} MB`;
}

export const threadsOf = (count: number): string => (count === 1 ? '1 thread' : `${count} threads`);
