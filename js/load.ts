/** From a build's name to a running module: which files, how they are fetched and compiled, and what to say when that fails. */
import type { CoreModule } from './wgemm-simd128.mjs';
import { ArgumentError, describe, GemmError, UnsupportedError } from './errors.js';

/**
 * Serves a file of the package from elsewhere. Gets the file's name, `wgemm-simd128.wasm`; gives its address, its bytes, or the compiled
 * module.
 */
export type Assets = (
  file: string,
) =>
  | URL
  | string
  | ArrayBuffer
  | ArrayBufferView
  | WebAssembly.Module
  | PromiseLike<URL | string | ArrayBuffer | ArrayBufferView | WebAssembly.Module>;

const op = 'createGemm';
const file = 'wgemm-simd128.wasm';

/** (module (func (result v128) (i32x4.splat (i32.const 0)) drop...)): valid where SIMD128 is. */
const simdProbe = Uint8Array.of(
  0,
  97,
  115,
  109,
  1,
  0,
  0,
  0,
  1,
  5,
  1,
  96,
  0,
  1,
  123,
  3,
  2,
  1,
  0,
  10,
  10,
  1,
  8,
  0,
  65,
  0,
  253,
  15,
  253,
  98,
  11,
);

/** Compiled once for all instances that take it from beside this file. */
let ownModule: Promise<WebAssembly.Module> | undefined;

/** @internal */
export async function loadCore(assets: Assets | undefined): Promise<CoreModule> {
  if (typeof WebAssembly !== 'object') throw new UnsupportedError(op, '', `${op}: this engine has no WebAssembly`);
  if (!WebAssembly.validate(simdProbe)) {
    throw new UnsupportedError(
      op,
      'simd',
      `${op}: this engine has no WebAssembly SIMD128; it needs Chrome 91, Firefox 89, Safari 16.4 or Node 16.4`,
    );
  }
  let compiled: WebAssembly.Module;
  if (assets) {
    compiled = await compile(await assets(file));
  } else {
    ownModule ??= compile(new URL('./wgemm-simd128.wasm', import.meta.url));
    try {
      compiled = await ownModule;
    } catch (error) {
      ownModule = undefined; // a later call may have more luck with the network
      throw error;
    }
  }
  const { default: factory } = await import('./wgemm-simd128.mjs');
  return await new Promise<CoreModule>((resolve, reject) => {
    factory({
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(compiled, imports).then(done).catch(reject);
        return {};
      },
    }).then(resolve, reject);
  }).catch((error: unknown) => {
    throw new GemmError('LOAD', op, '', `${op}: ${file} does not start: ${messageOf(error)}`, { cause: error });
  });
}

async function compile(source: unknown): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  let bytes = typeof source === 'string' || source instanceof URL ? await fetchBytes(source) : source;
  if (ArrayBuffer.isView(bytes)) bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!(bytes instanceof ArrayBuffer || bytes instanceof Uint8Array)) {
    throw new ArgumentError(
      op,
      'assets',
      `${op}: assets(${describe(file)}) gave ${describe(source)}; it must give a URL, bytes or a WebAssembly.Module`,
    );
  }
  try {
    return await WebAssembly.compile(bytes as BufferSource);
  } catch (error) {
    const policy = "a Content-Security-Policy must allow it by script-src 'wasm-unsafe-eval'";
    throw new GemmError('LOAD', op, '', `${op}: ${file} does not compile (${policy}): ${messageOf(error)}`, { cause: error });
  }
}

async function fetchBytes(source: URL | string): Promise<ArrayBuffer | Uint8Array> {
  const where = String(source);
  try {
    if (where.startsWith('file:')) {
      // fetch() of Node does not take file: addresses. Bundlers must leave this import alone.
      const node = 'node:fs/promises';
      const { readFile } = (await import(/* webpackIgnore: true */ /* @vite-ignore */ node)) as typeof import('node:fs/promises');
      return await readFile(new URL(where));
    }
    const response = await fetch(where);
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return await response.arrayBuffer();
  } catch (error) {
    const advice = 'serve the file beside the script, or say where it is with the option assets';
    throw new GemmError('LOAD', op, '', `${op}: ${where} cannot be fetched (${messageOf(error)}); ${advice}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
