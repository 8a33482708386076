// Replaces functions of Emscripten's library.
/* global addToLibrary */
addToLibrary({
  // The library's own waits by Atomics.waitAsync. That wait never ends, and the engine keeps the
  // memory of the instance for it. Without it messages come by postMessage. Here none come.
  // eslint-disable-next-line no-unused-vars -- the linker converts what it is called with
  _emscripten_thread_mailbox_await: (thread) => {},
  // The library's own reads navigator, which Node 20 lacks. 0: not known.
  emscripten_num_logical_cores: () =>
    globalThis.process?.getBuiltinModule?.('node:os')?.availableParallelism?.() ??
    globalThis.navigator?.hardwareConcurrency ??
    0,
});
