/** The files that the build puts next to the modules of this folder, or into a script. */
declare module '*.mjs' {
  const factory: import('./glue.js').Factory;
  export default factory;
}

declare module '*/wgemm-mt.js' {
  const factory: import('./glue.js').Factory;
  export default factory;
}

declare module '*.wasm' {
  const bytes: Uint8Array;
  export default bytes;
}
