// Emscripten calls functions that take an address by way of an array of their arguments, since an address above 2 GB comes back negative. Embind's
// invokers all take one, that of the function bound: a call of ours costs less than such an array.
addToLibrary({
  $getDynCaller__deps: ['$dynCall'],
  // dynCall brings getWasmTableEntry.
  $getDynCaller: (signature, address) => {
    if (signature.includes('j') || signature[0] == 'p') return (...args) => dynCall(signature, address, args);
    return getWasmTableEntry(address);
  },
});
