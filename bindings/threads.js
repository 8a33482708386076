// Replaces functions of Emscripten's library.
/* global addToLibrary */
addToLibrary({
  // The library's waits for messages by Atomics.waitAsync. That wait never ends, and the engine
  // keeps the memory of the instance for it. Without it messages come by postMessage. Here none
  // come.
  // eslint-disable-next-line no-unused-vars -- the linker converts what it is called with
  _emscripten_thread_mailbox_await: (thread) => {},
  // Node 20 has no navigator.
  emscripten_num_logical_cores: () => globalThis.navigator?.hardwareConcurrency ?? 0,
});
