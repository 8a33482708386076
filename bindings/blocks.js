// The core calls this while it computes out-of-core: it moves a block of an operand to the heap, or
// from there. js/call/out-of-core.ts sets the function.
/* global addToLibrary, Module */
addToLibrary({
  wgemm_move_block: (place, offset, count, length, runStride, stride, address) =>
    Module['moveBlock'](place, offset, count, length, runStride, stride, address),
});
