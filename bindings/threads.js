// Replaces a function of Emscripten's library that waits for messages by Atomics.waitAsync. That
// wait never ends, and the engine keeps the memory of the instance for it. Without it messages come
// by postMessage. Here none come.
/* global addToLibrary */
addToLibrary({
  // eslint-disable-next-line no-unused-vars -- the linker converts what it is called with
  _emscripten_thread_mailbox_await: (thread) => {},
});
