// Addresses above 2 GB arrive as negative numbers. To correct them, Emscripten's own getDynCaller
// collects the arguments of each call in an array, which costs more than our calls. Embind uses it
// for every function, since each invoker takes the address of the bound function.
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
// reach the caller, who then ends the instance (js/instance/core.ts).
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
