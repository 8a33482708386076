/** Numbers as the page shows them. */

/**
 * A whole number with commas, as 12,345. `toLocaleString()` loads the data of a language first,
 * which takes a slow phone 50 ms.
 */
export const whole = (value: number): string =>
  String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');

/** Three significant digits, as 0.123, 1.23, 12.3 and 123; whole from 100 on. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-';
  if (value >= 99.95) return whole(value);
  return value.toFixed(value >= 9.995 ? 1 : 2);
}

/** Seconds as ns, us, ms or s. */
export function duration(seconds: number): string {
  if (seconds < 1e-6) return `${figure(seconds * 1e9)} ns`;
  if (seconds < 1e-3) return `${figure(seconds * 1e6)} \u00b5s`;
  if (seconds < 1) return `${figure(seconds * 1e3)} ms`;
  return `${figure(seconds)} s`;
}

/** Bytes as kB or MB, of 1,000 each. */
export function bytes(count: number): string {
  if (count < 1000) return `${count} bytes`;
  return count < 1e6 ? `${figure(count / 1e3)} kB` : `${figure(count / 1e6)} MB`;
}

export const threadsOf = (count: number): string => (count === 1 ? '1 thread' : `${count} threads`);
