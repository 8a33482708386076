/** From a build's name to a running module: which files, how they are fetched and compiled, and what to say when that fails. */
import type { CoreModule } from './wgemm-simd128.mjs';
import { ArgumentError, describe, GemmError, UnsupportedError } from './errors.js';
import { file, glue, wasm } from './pair.js';

/** An address (text or a URL; in Node a path, too), bytes (an ArrayBuffer or a view), or a compiled WebAssembly.Module, which not every user's TypeScript knows. */
export type AssetSource = string | object;

/** Serves a file of the package from elsewhere. Gets its name, `wgemm-simd128.wasm`. */
export type Assets = (file: string) => AssetSource | PromiseLike<AssetSource>;

const op = 'createGemm';

/** What every WebAssembly file begins with. */
const magic = [0, 97, 115, 109];

/** (module (func (result v128) (i32x4.splat (i32.const 0)) drop...)): valid where SIMD128 is. */
// prettier-ignore
const simdProbe = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
);

/** Compiled once for all instances that take it from the package. */
let ownModule: Promise<WebAssembly.Module> | undefined;

/** @internal */
export async function loadCore(assets: Assets | undefined): Promise<CoreModule> {
  if (typeof WebAssembly !== 'object') throw new UnsupportedError(op, '', `${op}: this engine has no WebAssembly`);
  if (!hasSimd()) {
    throw new UnsupportedError(op, 'simd', `${op}: this engine has no WebAssembly SIMD128; it needs Chrome 91, Firefox 89 or Safari 16.4`);
  }
  const [compiled, { default: factory }] = await Promise.all([assets ? compileAsset(assets) : compileOwn(), importGlue()]);
  return await new Promise<CoreModule>((resolve, reject) => {
    factory({
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(compiled, imports).then(done).catch(reject);
        return {};
      },
    }).then(resolve, reject);
  }).catch((error: unknown) => {
    throw failure(`${file} does not start`, error);
  });
}

/** Runtimes that take compiled modules only may forbid looking at bytes; there the module itself will tell. */
function hasSimd(): boolean {
  try {
    return WebAssembly.validate(simdProbe);
  } catch {
    return true;
  }
}

async function importGlue(): ReturnType<typeof glue> {
  try {
    return await glue();
  } catch (error) {
    throw failure(`the glue of ${file} cannot be imported`, error, 'serve the .mjs of the package beside the script');
  }
}

async function compileOwn(): Promise<WebAssembly.Module> {
  ownModule ??= (async () => {
    let source;
    try {
      source = wasm();
    } catch (error) {
      throw failure(`this script does not know its own address`, error, `say where ${file} is with the option assets`);
    }
    return await compile(source);
  })();
  try {
    return await ownModule;
  } catch (error) {
    ownModule = undefined; // a later call may have more luck with the network
    throw error;
  }
}

async function compileAsset(assets: Assets): Promise<WebAssembly.Module> {
  const source: unknown = await assets(file);
  if (source instanceof WebAssembly.Module) return source;
  if (typeof source === 'string' || source instanceof URL) return await compile(source);
  if (ArrayBuffer.isView(source)) return await compile(new Uint8Array(source.buffer, source.byteOffset, source.byteLength));
  if (source instanceof ArrayBuffer) return await compile(new Uint8Array(source));
  throw new ArgumentError(
    op,
    'assets',
    `${op}: assets(${describe(file)}) gave ${describe(source)}; it must give a URL, bytes or a WebAssembly.Module`,
  );
}

async function compile(source: URL | string | Uint8Array): Promise<WebAssembly.Module> {
  const whole = source instanceof Uint8Array ? source : await fetchWasm(source);
  try {
    return await (whole instanceof Uint8Array ? WebAssembly.compile(whole as BufferSource) : WebAssembly.compileStreaming(whole));
  } catch (error) {
    if (whole instanceof Uint8Array && !magic.every((byte, i) => whole[i] === byte)) {
      // What a server says that answers every address with its page.
      const where = source instanceof Uint8Array ? file : String(source);
      throw failure(`${where} is no WebAssembly`, error, 'serve the file beside the script, or say where it is with the option assets');
    }
    const forbidden = /CSP|content.security|unsafe-eval/i.test(String(error));
    const advice = "the Content-Security-Policy must allow it by script-src 'wasm-unsafe-eval'";
    throw failure(`${file} does not compile`, error, forbidden ? advice : undefined);
  }
}

/** The bytes, or a response that can be compiled while it arrives. */
async function fetchWasm(source: URL | string): Promise<Response | Uint8Array> {
  const where = String(source);
  try {
    // fetch() of Node does not take files. Not by an import, which bundlers for pages would look for.
    const node = globalThis.process?.getBuiltinModule?.('node:fs/promises');
    if (node && where.startsWith('file://')) return await node.readFile(new URL(where));
    if (node && !/^[a-z][a-z\d+.-]+:/i.test(where)) return await node.readFile(where); // a path
    const response = await fetch(where);
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    const streams = typeof WebAssembly.compileStreaming === 'function' && response.headers.get('Content-Type') === 'application/wasm';
    return streams ? response : new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    throw failure(`${where} cannot be fetched`, error, 'serve the file beside the script, or say where it is with the option assets');
  }
}

function failure(what: string, cause: unknown, advice = ''): GemmError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new GemmError('LOAD', op, '', `${op}: ${what} (${why})${advice && `; ${advice}`}`, { cause });
}
