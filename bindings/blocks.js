// What the core calls to have a block of an operand that is not in the heap brought there, or taken
// from there: js/out-of-core.ts does it.
/* global addToLibrary, Module */
addToLibrary({
  wgemm_move_block: (place, offset, count, length, runStride, stride, address) =>
    Module['moveBlock'](place, offset, count, length, runStride, stride, address),
});
