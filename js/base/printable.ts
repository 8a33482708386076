/** The texts of instances and handles, for consoles and `String()`. */
import { bytesOf } from './arrays.js';
import type { DType } from './tensor.js';

/** An instance has `info`, and a handle the others. */
interface Parts {
  readonly disposed: boolean;
  readonly info?: { version: string; build: string; determinism: string; threads: number };
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly size: number;
  readonly byteLength?: number;
}

/**
 * @internal Gives a class its text: what an object is, and the `details` unless it is disposed.
 * Consoles of Node, Bun and Deno print it; inside another object they print its first line.
 */
export function printable<T extends object>(prototype: T, details: (object: T) => string): void {
  // Consoles pass the depth and their options. toString() passes nothing.
  function value(this: T, depth?: number, options?: { depth: number }): string {
    let text = prototype.constructor.name;
    try {
      const { info, dtype, shape, size, byteLength, disposed } = this as unknown as Parts;
      text += info
        ? ` ${info.version}: ${info.build}, ${info.determinism}, threads ${info.threads}`
        : ` ${dtype} [${shape.join(', ')}], ${byteLength ?? size * bytesOf(dtype)} bytes`;
      text += disposed ? ', disposed' : `\n  ${details(this)}`;
    } catch {
      // The object is a proxy, or only inherits from the class. The text is the name alone.
    }
    const isNested = (depth as number) < (options?.depth as number);
    return isNested ? (text.split('\n')[0] as string) : text;
  }
  for (const key of ['toString', Symbol.for('nodejs.util.inspect.custom')])
    Object.defineProperty(prototype, key, { value });
}
