/** Makes the engine look like one without relaxed SIMD, so that the tests that ask for no build run on simd128. */
const { validate } = WebAssembly;
WebAssembly.validate = (bytes) => validate(bytes) && !/,253,1[2-9]\d,2,/.test((bytes as Uint8Array).join()); // the opcodes 0x100 and on
