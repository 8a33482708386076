/* global Module, ENV */
// The test program as wasm sees the environment variables of its process; Emscripten gives it none.
Module['preRun'] = () => Object.assign(ENV, process.env);
