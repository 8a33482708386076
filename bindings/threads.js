// Replaces a function of Emscripten's library. A mailbox that is waited for by Atomics.waitAsync is
// waited for without end, and the engine keeps the memory of the instance for that, also when all
// else of it is gone. Without, messages come by postMessage, and here none do.
/* global addToLibrary */
addToLibrary({
  // eslint-disable-next-line no-unused-vars -- the linker converts what it is called with
  _emscripten_thread_mailbox_await: (thread) => {},
});
