/** The operators of modules for models. */
import type { Core } from './core.js';

/** @internal The numbers of the operators of src/nn/, by name. */
export function operatorsOf(core: Core): ReadonlyMap<string, number> {
  const { operators } = core;
  if (operators.size === 0) {
    const next = () => core.module.operatorName?.(operators.size);
    for (let address = next(); address; address = next())
      operators.set(core.text(address), operators.size);
  }
  return operators;
}
