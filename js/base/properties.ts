/**
 * Properties of the caller's objects. A property that a page added to `Object.prototype` does not
 * count as one of them.
 */
const base = Object.prototype;

/**
 * Whether `Object.prototype` has a name that a call reads. The names are written out, because
 * engines compile this form to almost nothing.
 */
// prettier-ignore
function isPolluted(): boolean {
  return (
    // Tensors.
    'data' in base || 'shape' in base || 'dtype' in base || 'strides' in base ||
    'stride' in base || 'offset' in base ||
    'byteOffset' in base || 'start' in base || 'step' in base || 'order' in base ||
    'layout' in base ||
    'storageOffset' in base || 'begin' in base || 'fortranOrder' in base ||
    'fortran_order' in base ||
    'isFortran' in base || 'columnMajor' in base || 'column_major' in base || 'colMajor' in base ||
    'isColumnMajor' in base || 'transposed' in base ||
    // Options and inputs of the operations, and of pack.
    'alpha' in base || 'beta' in base || 'transA' in base || 'transB' in base || 'opset' in base ||
    'broadcast' in base ||
    'activation' in base || 'out' in base || 'transposeA' in base || 'transposeB' in base ||
    'outType' in base ||
    'a' in base || 'aScale' in base || 'aZeroPoint' in base || 'b' in base || 'bScale' in base ||
    'bZeroPoint' in base ||
    'c' in base || 'yScale' in base || 'yZeroPoint' in base || 'op' in base || 'trans' in base ||
    'as' in base ||
    // Options of createGemm, of every call in a worker, and of quantize.
    'threads' in base || 'simd' in base || 'determinism' in base || 'assets' in base ||
    'maxMemory' in base || 'models' in base || 'vectors' in base ||
    'worker' in base || 'transfer' in base || 'signal' in base ||
    'symmetric' in base || 'axis' in base || 'scale' in base || 'zeroPoint' in base ||
    // Properties of weights of a few bits.
    'scales' in base || 'zeroPoints' in base || 'k' in base || 'n' in base || 'bits' in base ||
    'blockSize' in base || 'accuracyLevel' in base || 'type' in base ||
    // Options of attention.
    'mask' in base || 'lengths' in base || 'causal' in base || 'softcap' in base ||
    'window' in base ||
    // Options of layers.
    'weights' in base || 'bias' in base || 'input' in base || 'output' in base
  );
}

/** @internal Whether an object has a property, of its own or from a class of the caller. */
export function has(object: object, name: string): boolean {
  if (!(name in object) || !(name in base)) return name in object;
  for (
    let from: unknown = object;
    from !== null && from !== base;
    from = Object.getPrototypeOf(from)
  ) {
    if (base.hasOwnProperty.call(from, name)) return true;
  }
  return false;
}

/**
 * @internal The object; or a copy of its properties if `Object.prototype` has some of the names.
 */
export function unpolluted(object: object, names: readonly string[]): Record<string, unknown> {
  const from = object as Record<string, unknown>;
  if (!isPolluted()) return from;
  const properties = Object.create(null) as Record<string, unknown>;
  for (const name of names) if (has(object, name)) properties[name] = from[name];
  return properties;
}

/**
 * @internal The key under which a handle describes itself to other copies of this package, which
 * have other classes.
 */
export const handleKey = Symbol.for('wgemm.handle');

/** @internal How a handle describes itself; undefined for other objects. */
export function handleIn(value: object): string | undefined {
  const text = (value as { [handleKey]?: unknown })[handleKey];
  return typeof text === 'string' ? text : undefined;
}

/**
 * @internal Whether a value is a revoked proxy, on which every other operation throws.
 */
export function isRevoked(value: unknown): boolean {
  try {
    Array.isArray(value);
    return false;
  } catch {
    return true;
  }
}

/** @internal Whether a value is an object whose properties can be read. */
export function isReadable(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !isRevoked(value);
}

/** @internal Whether a value is an array or a proxy of one. */
export function isList(value: unknown): value is unknown[] {
  return !isRevoked(value) && Array.isArray(value);
}

/** Classes of the engine, by the names that `Object.prototype.toString` gives their objects. */
interface Classes {
  DOMException: Error;
  Error: Error;
  URL: URL;
  'WebAssembly.Module': WebAssembly.Module;
}

/**
 * @internal Whether a value is an object of a class of the engine. `instanceof` does not know the
 * objects of another realm, which Node's modules return under jsdom.
 */
export function isA<N extends keyof Classes>(value: unknown, name: N): value is Classes[N] {
  return isReadable(value) && base.toString.call(value) === `[object ${name}]`;
}

/** @internal Whether a value is an error or a DOMException. */
export function isError(value: unknown): value is Error {
  return isA(value, 'Error') || isA(value, 'DOMException');
}
