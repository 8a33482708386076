// Emscripten calls functions that take an address by way of an array of their arguments, since an
// address above 2 GB comes back negative. Embind's invokers all take one, that of the function
// bound: a call of ours costs less than such an array.
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
// Emscripten takes any error on the way for memory that the engine refused. A stack overflow may
// come when the memory has grown, and before the glue has views of it: that error must reach the
// caller, who then ends the instance (js/core.ts).
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
