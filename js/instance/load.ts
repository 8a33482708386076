/** Chooses a build, fetches and compiles its files, and starts it. */
import { bytesIn } from '../base/arrays.js';
import { adviceForBytes, formatOf } from '../base/bytes.js';
import { ArgumentError, describe, GemmError, UnsupportedError } from '../base/errors.js';
import { lackOfModules, messageOf } from '../base/port.js';
import { isA, isRevoked } from '../base/properties.js';
import { type Builds, builds, hasAll, thread, threadedGlue } from './builds.js';
import { otherOrigin } from './cross-origin.js';
import type { CoreModule, Factory } from './glue.js';
import { lackOfThreads, makeMemory, startThreads, usualThreads } from './threads/threads.js';

import glue from './wgemm-glue.mjs';

/**
 * A file of the package: its address, its bytes, or a compiled WebAssembly.Module. An address is
 * text or a URL, and in Node also a path. Bytes are an ArrayBuffer or a view.
 *
 * @category Instances
 */
export type AssetSource = string | object;

/**
 * A function that says where a file of the package is.
 *
 * `createGemm` calls it with the name of the file, such as `wgemm-relaxed.wasm`. With threads it
 * asks first for `wgemm-relaxed-mt.wasm`, and then for `wgemm-thread.js`. For the latter, the
 * function must return an address, or undefined if that file is next to the script.
 *
 * @param file the name of the file
 *
 * @example
 * const assets = (file) => `https://example.com/wgemm/${file}`;
 * const wg = await createGemm({ assets });
 *
 * @category Instances
 */
export type Assets = (
  file: string,
) => AssetSource | undefined | PromiseLike<AssetSource | undefined>;

const op = 'createGemm';

/** The first bytes of every WebAssembly file. */
const magic = [0, 97, 115, 109];

type Build = 'simd128' | 'relaxed';

/** Modules of one function with the instructions of a build: valid if the build runs. */
// prettier-ignore
const probes: Record<Build, Uint8Array> = {
  // i32x4.splat, i8x16.popcnt
  simd128: Uint8Array.of(
    0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0,
    65, 0, 253, 15, 253, 98, 11,
  ),
  // x * x + y by f32x4.relaxed_madd, where x and y are the parameters; and f64x2.relaxed_madd,
  // i16x8.relaxed_dot_i8x16_i7x16_s, i32x4.relaxed_dot_i8x16_i7x16_add_s, whose result is dropped
  relaxed: Uint8Array.of(
    0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 125, 125, 1, 125, 3, 2, 1, 0,
    7, 4, 1, 0, 0, 0, 10, 56, 1, 54, 0,
    32, 0, 253, 19, 32, 0, 253, 19, 32, 1, 253, 19, 253, 133, 2,
    32, 0, 253, 19, 32, 0, 253, 19, 32, 0, 253, 19, 253, 135, 2,
    32, 0, 253, 19, 253, 146, 2,
    32, 0, 253, 19, 32, 0, 253, 19, 253, 147, 2,
    26, 253, 31, 0, 11,
  ),
};

/**
 * Whether a build runs. Runtimes that take only compiled modules may forbid `validate`. If one
 * does, this assumes that only simd128 runs. If even that does not run, compiling it fails.
 */
function runs(build: Build): boolean {
  try {
    return WebAssembly.validate(probes[build] as BufferSource);
  } catch {
    return build === 'simd128';
  }
}

/** The result of fuses(). */
let isFused: boolean | undefined;

/**
 * Whether the engine fuses multiply-adds, which `validate` cannot tell. If it does not, the relaxed
 * build gains nothing for floats, and uses no relaxed dot products. If a page may not compile
 * synchronously, this assumes that the engine fuses.
 */
function fuses(): boolean {
  try {
    const module = new WebAssembly.Module(probes.relaxed as BufferSource);
    const { exports } = new WebAssembly.Instance(module);
    // The sum is 2^-24, which is lost if the product is rounded.
    return (exports[''] as (x: number, y: number) => number)(1 + 2 ** -12, -1 - 2 ** -11) !== 0;
  } catch {
    return true;
  }
}

/** The build to load, and why. */
function choose(simd: 'auto' | Build): { build: Build; why: string } {
  if (typeof WebAssembly !== 'object')
    throw new UnsupportedError(op, '', `${op}: this engine has no WebAssembly`);
  if (!runs('simd128')) {
    const needed = 'use Chrome 91, Firefox 89, Safari 16.4, or a later one';
    const message = `${op}: this engine has no WebAssembly SIMD128; ${needed}`;
    throw new UnsupportedError(op, 'simd', message);
  }
  if (simd === 'simd128') return { build: simd, why: 'as asked' };
  const lacks = !hasAll
    ? 'this entry has simd128 only'
    : !runs('relaxed')
      ? 'this engine has no relaxed SIMD'
      : simd === 'auto' && !(isFused ??= fuses())
        ? 'this engine does not fuse multiply-adds'
        : undefined;
  const isAuto = simd === 'auto';
  if (lacks === undefined)
    return { build: 'relaxed', why: isAuto ? 'the engine has relaxed SIMD' : 'as asked' };
  if (isAuto) return { build: 'simd128', why: lacks };
  throw new UnsupportedError(op, 'simd', `${op}: simd is 'relaxed'; ${lacks}`);
}

/** Modules of the package's own files, each compiled once for all instances. */
const ownModules = new Map<string, Promise<WebAssembly.Module>>();

/** @internal A running module. */
export interface LoadedCore {
  module: CoreModule;
  threads: number;
  /** Why it is this build and has this number of threads. */
  why: string;
  /** Ends the threads besides the caller's. */
  endThreads: () => void;
}

/** @internal */
export interface CoreOptions {
  simd: 'auto' | Build;
  threads: 'auto' | number;
  models: boolean;
  assets: Assets | undefined;
  /** Bytes; 0 for the limit of the engine. */
  memoryLimit: number;
  strict: boolean;
}

/** @internal Loads and starts a build. Calls `onDeath` if a thread ends by itself. */
export async function loadCore(
  options: CoreOptions,
  onDeath: (why: string) => void,
): Promise<LoadedCore> {
  const { simd, threads, models, assets } = options;
  const { build, why } = choose(simd);
  if (models && !hasAll) {
    const lacks = 'this entry has no operators of models';
    throw new UnsupportedError(op, 'models', `${op}: models is true; ${lacks}`);
  }
  const suffix = models ? '-models' : '';
  const wanted = threads === 'auto' ? usualThreads() : threads;
  const alone = async (whyAlone: string): Promise<LoadedCore> => {
    const module = await start(`${build}${suffix}`, options, () =>
      makeMemory(1, options.memoryLimit),
    );
    return {
      module,
      threads: 1,
      why: `build: ${why}; threads: ${whyAlone}`,
      endThreads: () => undefined,
    };
  };
  if (wanted === 1)
    return alone(threads === 'auto' ? 'one, since there is only one processor' : 'as asked');
  const lacks = hasAll ? lackOfThreads() : 'this entry has no threads';
  if (lacks !== undefined) {
    if (threads === 'auto') return alone(`one, since ${lacks}`);
    throw new UnsupportedError(op, 'threads', `${op}: threads is ${threads}; ${lacks}`);
  }
  try {
    const memory = sharedMemory(wanted, options.memoryLimit);
    const module = await start(`${build}-mt${suffix}`, options, () => memory);
    const endThreads = await together(module, wanted, assets, onDeath);
    const whyThreads =
      threads === 'auto' ? 'as many as processors, up to 16, and one less above 4' : 'as asked';
    return {
      module,
      threads: wanted,
      why: `build: ${why}; threads: ${whyThreads}`,
      endThreads,
    };
  } catch (error) {
    if (
      threads !== 'auto' ||
      (error instanceof GemmError && error.code === 'ARGUMENT') ||
      errorsOfAssets.has(error as object)
    )
      throw error;
    return alone(`one, since more do not start: ${messageOf(error)}`);
  }
}

/** Errors that the caller's `assets` threw. The call throws them unchanged. */
const errorsOfAssets = new WeakSet<object>();

/** @internal Asks `assets` for the source of a file. */
export async function ask(file: string, assets: Assets | undefined): Promise<unknown> {
  const source: unknown = assets?.(file);
  if (isRevoked(source)) throw notSource(file, describe(source));
  return await source;
}

async function asked(file: string, assets: Assets | undefined): Promise<unknown> {
  try {
    return await ask(file, assets);
  } catch (error) {
    if (typeof error === 'object' && error !== null) errorsOfAssets.add(error);
    throw error;
  }
}

function sharedMemory(threads: number, limit: number): WebAssembly.Memory {
  try {
    return makeMemory(threads, limit);
  } catch (error) {
    throw new UnsupportedError(
      op,
      'threads',
      `${op}: threads is ${threads}; no shared memory is available (${messageOf(error)})`,
    );
  }
}

/** Starts the threads of a module. Returns the function that ends them. */
async function together(
  module: CoreModule,
  threads: number,
  assets: Assets | undefined,
  onDeath: (why: string) => void,
): Promise<() => void> {
  const file = 'wgemm-thread.js';
  const script =
    readThreadSource(file, await asked(file, assets)) ?? ownFile(file, () => thread().script);
  try {
    return await startThreads(module, threads, script, onDeath);
  } catch (error) {
    const what = `threads is ${threads}, but a thread does not start`;
    throw failure(what, error, adviceForScript(file, script), 'WORKER', 'threads');
  }
}

/** An instance of a file's module. */
async function start(
  name: keyof Builds,
  { assets, memoryLimit, strict }: CoreOptions,
  memory: () => WebAssembly.Memory,
): Promise<CoreModule> {
  const file = `wgemm-${name}.wasm`;
  const find = () => builds()[name] as URL | Uint8Array;
  const compiling = assets ? compileAsset(file, assets) : compileOwn(file, find);
  const importing = name.includes('-mt') ? importThreadedGlue() : Promise.resolve(glue);
  importing.catch(() => undefined);
  // If both fail, throw the error of the .wasm, which names an address and a remedy.
  const compiled = await compiling;
  const factory = await importing;
  const module = await new Promise<CoreModule>((resolve, reject) => {
    factory({
      wasmMemory: memory(),
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(compiled, imports)
          .then((instance) => done(instance, compiled))
          .catch(reject);
        return {};
      },
    }).then(resolve, reject);
  }).catch((error: unknown) => {
    throw failure(`${file} does not start`, error);
  });
  module.start(memoryLimit, strict);
  return module;
}

async function importThreadedGlue(): Promise<Factory> {
  try {
    return await threadedGlue();
  } catch (error) {
    throw failure(
      'wgemm-mt.js cannot be imported',
      error,
      'serve this file of the package next to the script',
    );
  }
}

/** The result of `find` for a file next to the script: its address or its bytes. */
function ownFile<T>(file: string, find: () => T): T {
  try {
    return find();
  } catch (error) {
    throw failure(
      `this script does not know its own address`,
      error,
      `say where ${file} is with the option assets`,
    );
  }
}

async function compileOwn(file: string, find: () => URL | Uint8Array): Promise<WebAssembly.Module> {
  const compiling =
    ownModules.get(file) ?? (async () => await compile(file, ownFile(file, find)))();
  ownModules.set(file, compiling);
  try {
    return await compiling;
  } catch (error) {
    ownModules.delete(file); // so that a later call tries the network again
    throw error;
  }
}

async function compileAsset(file: string, assets: Assets): Promise<WebAssembly.Module> {
  const source = readWasmSource(file, await asked(file, assets));
  return isA(source, 'WebAssembly.Module') ? source : await compile(file, source);
}

/** @internal Checks what `assets` returned for a `.wasm`. */
export function readWasmSource(
  file: string,
  source: unknown,
): WebAssembly.Module | string | URL | Uint8Array {
  if (isA(source, 'WebAssembly.Module') || isAddress(source)) return source;
  const bytes = bytesIn(source);
  if (!ArrayBuffer.isView(bytes)) throw notSource(file, describe(source), adviceForBytes(source));
  try {
    const { buffer, byteOffset, byteLength } = bytes;
    return new Uint8Array(buffer, byteOffset, byteLength);
  } catch {
    throw notSource(file, 'a detached array');
  }
}

/** @internal Checks what `assets` returned for the script of threads. */
export function readThreadSource(file: string, source: unknown): string | URL | undefined {
  if (source === undefined || source === null) return undefined;
  if (isAddress(source)) return source;
  const allowed = 'it must return a URL, or undefined if the file is next to the script';
  const message = `${op}: assets('${file}') returned ${describe(source)}; ${allowed}`;
  throw new ArgumentError(op, 'assets', message);
}

/** @internal Whether a source is an address. An object may only call itself a URL. */
export function isAddress(source: unknown): source is string | URL {
  try {
    return typeof (isA(source, 'URL') ? source.href : source) === 'string';
  } catch {
    return false;
  }
}

function notSource(file: string, found: string, advice = ''): ArgumentError {
  const allowed = `it must return a URL, bytes or a WebAssembly.Module${advice}`;
  const message = `${op}: assets(${describe(file)}) returned ${found}; ${allowed}`;
  return new ArgumentError(op, 'assets', message);
}

async function compile(
  file: string,
  source: URL | string | Uint8Array,
): Promise<WebAssembly.Module> {
  const whole = ArrayBuffer.isView(source) ? source : await fetchWasm(source);
  try {
    return await (ArrayBuffer.isView(whole)
      ? WebAssembly.compile(whole as BufferSource)
      : WebAssembly.compileStreaming(whole));
  } catch (error) {
    const bytes = ArrayBuffer.isView(whole) ? whole : await fetchAgain(whole.url);
    if (bytes && !magic.every((byte, i) => bytes[i] === byte)) {
      // Some servers answer every address with a page.
      const where = ArrayBuffer.isView(source) ? file : String(source);
      const found = [formatOf(bytes), 'not WebAssembly'].filter(Boolean).join(', ');
      throw failure(`${where} is ${found}`, error, adviceFor(where));
    }
    const forbidden = /CSP|content.security|unsafe-eval/i.test(String(error));
    const advice = "allow it in the Content-Security-Policy by script-src 'wasm-unsafe-eval'";
    throw failure(`${file} does not compile`, error, forbidden ? advice : undefined);
  }
}

/** The bytes of a response that was read; undefined if they cannot be fetched again. */
async function fetchAgain(where: string): Promise<Uint8Array | undefined> {
  try {
    return await contentOf(await fetch(where));
  } catch {
    return undefined;
  }
}

async function contentOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}

/** The bytes, or a response that can be compiled while it arrives. */
async function fetchWasm(source: URL | string): Promise<Response | Uint8Array> {
  const where = String(source);
  let advice = adviceForOrigin(source) ?? adviceFor(where);
  try {
    // fetch() of Node takes no files. An import of fs would make bundlers look for it.
    const node = globalThis.process?.getBuiltinModule?.('node:fs/promises');
    if (node && where.startsWith('file://')) return await node.readFile(new URL(where));
    if (node && !/^[a-z][a-z\d+.-]+:/i.test(where)) return await node.readFile(where); // a path
    const response = await fetch(where);
    advice = adviceFor(where);
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    const compilesWhileFetching =
      typeof WebAssembly.compileStreaming === 'function' &&
      response.headers.get('Content-Type') === 'application/wasm';
    return compilesWhileFetching ? response : await contentOf(response);
  } catch (error) {
    const lacks = /^https?:/i.test(where) ? undefined : lackOfModules();
    if (lacks) throw new UnsupportedError(op, '', `${op}: ${lacks}`);
    throw failure(`${where} cannot be fetched`, error, advice);
  }
}

/**
 * @internal The advice if a file of the package is not at an address. Vite's development server
 * moves scripts to a folder `deps` of its cache, but not the files next to them. Next.js gives
 * server code addresses that are for pages.
 */
export function adviceFor(
  where: unknown,
  otherwise = 'serve the file next to the script (in Angular: add it to the assets of ' +
    'angular.json), or say where it is with the option assets',
): string {
  const address = String(where);
  if (/\bvite\/.*deps/.test(address))
    return "set optimizeDeps: { exclude: ['wgemm'] } in vite.config.js";
  if (/^\/_next\/|\.next\//.test(address))
    return "set serverExternalPackages: ['wgemm'] in next.config.js, or import wgemm/inline";
  return otherwise;
}

/**
 * @internal The advice if a worker does not start from a script of the package.
 *
 * @param script its address; undefined if the caller made the worker
 */
export function adviceForScript(file: string, script: URL | string | undefined): string {
  const place = 'next to this script, in the origin of the page, with headers that allow it';
  return adviceForOrigin(script) ?? adviceFor(script, `put ${file} ${place}`);
}

/** The advice if an address of another origin does not load; undefined for the page's own. */
function adviceForOrigin(where: URL | string | undefined): string | undefined {
  const origin = where && otherOrigin(where);
  if (!origin) return undefined;
  const header = `${origin} must serve ${String(where)} with Access-Control-Allow-Origin: *`;
  const scripts = `worker-src blob:, script-src 'wasm-unsafe-eval' ${origin}`;
  const policy = `a Content-Security-Policy must allow ${scripts}, connect-src ${origin}`;
  return `${header}, and ${policy}; or host the package in the origin of the page`;
}

/**
 * @internal The error if something does not load. It has no advice if the runtime's message already
 * names the flag that allows it.
 */
export function failure(
  what: string,
  cause: unknown,
  advice = '',
  code: 'LOAD' | 'WORKER' = 'LOAD',
  argument = '',
): GemmError {
  const why = messageOf(cause);
  const rest = advice && !/--allow-/.test(why) ? `; ${advice}` : '';
  return new GemmError(code, op, argument, `${op}: ${what} (${why})${rest}`, { cause });
}
