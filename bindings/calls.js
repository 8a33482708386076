// Emscripten makes an array of the arguments of each function that takes an address, since an
// address above 2 GB arrives as a negative number. All invokers of Embind take one, the address of
// the function that is bound. The array would cost more than our calls.
/* global addToLibrary, dynCall, getWasmTableEntry, updateMemoryViews, wasmMemory */
addToLibrary({
  $getDynCaller__deps: ['$dynCall'],
  // dynCall brings getWasmTableEntry.
  $getDynCaller: (signature, address) => {
    if (signature.includes('j') || signature[0] == 'p')
      return (...args) => dynCall(signature, address, args);
    return getWasmTableEntry(address);
  },
});
// Emscripten's own function takes any error to mean that the engine refused the memory. A stack
// overflow may come after the memory has grown and before the glue has views of it. That error must
// reach the caller, who then ends the instance (js/core.ts).
addToLibrary({
  $growMemory: (size) => {
    try {
      wasmMemory.grow((size - wasmMemory.buffer.byteLength + 65535) >>> 16);
    } catch {
      return 0;
    }
    updateMemoryViews();
    return 1;
  },
});
