/** Makes `using` work with classes that have `dispose()`, also in engines that do not know it. */
const disposeSymbol: typeof Symbol.dispose =
  Symbol.dispose ?? (Symbol.for('Symbol.dispose') as typeof Symbol.dispose);

/**
 * @internal Adds `[Symbol.dispose]` to a class, under the engine's symbol or, without one, under
 * the helper of compilers.
 */
export function disposable(prototype: { dispose(): void }): void {
  Object.defineProperty(prototype, disposeSymbol, {
    // The page may have given `Object.prototype` a `get`.
    __proto__: null,
    value(this: { dispose(): void }) {
      this.dispose();
    },
    configurable: true,
    writable: true,
  } as PropertyDescriptor);
}
