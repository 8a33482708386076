/** Makes an engine with relaxed SIMD look like one without. */

/** Hides it, until the function that this returns is called. */
export function hideRelaxed(): () => void {
  const { validate } = WebAssembly;
  // Its opcodes, 0x100 and on, are 253, 128 and more, 2.
  WebAssembly.validate = (bytes) =>
    validate(bytes) && !/,253,1[2-9]\d,2,/.test((bytes as Uint8Array).join());
  return () => {
    WebAssembly.validate = validate;
  };
}
