// Loads the peers in the benchmark of search. Only a module in this folder finds their packages.

/** hnswlib compiled to WebAssembly, without its file system. Its code asks for a window. */
export async function loadHnswlib() {
  globalThis.window = globalThis;
  try {
    const { default: start } = await import('hnswlib-wasm/dist/hnswlib-317962d7.js');
    return await start();
  } finally {
    delete globalThis.window;
  }
}

/** USearch as a native library. */
export const loadUsearch = () => import('usearch');
