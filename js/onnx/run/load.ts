/** `loadModel`: chooses where a model runs, and loads it there. */
import { createGemm, type Gemm } from '../../api/create-gemm.js';
import type { InstanceLink } from '../../api/worker-handles.js';
import { givenBytes } from '../../base/bytes.js';
import { ArgumentError, describe } from '../../base/errors.js';
import { has, isList, isReadable } from '../../base/properties.js';
import { readOptions } from '../../base/read-options.js';
import { type Core, cores, links } from '../../instance/core.js';
import type { InstanceOptions } from '../../instance/start-core.js';
import type { WorkerGemm } from '../../worker/gemm.js';
import type { OnnxModel } from '../read/model.js';
import { checkFetch, type LeftData, models, readChecked, type ReadOptions } from '../read/read.js';
import { checkGraph } from '../graph/graph.js';
import { LoadedModel, type Model } from './model.js';
import { loadInWorker } from './worker-session.js';
import { type Progress, Session } from './session.js';
import { disposeAll, findPackable, packExternal, type Prepacked } from './external.js';

/**
 * Options of {@link loadModel}, and options of {@link readOnnx}. The instance `wg` comes
 * from `wgemm` or `wgemm/worker`, and was created with `models: true`. An instance of
 * `wgemm/inline`, which is a separate copy, is refused. Dispose of the instance after the model.
 *
 * @category Models
 */
export type LoadOptions = InstanceOptions<Gemm | WorkerGemm> &
  ReadOptions & {
    /**
     * The names of the outputs, such as `['probabilities']`, or of values between nodes. The model
     * loads only what they need: it has no other inputs, and other nodes need not be supported.
     * Default: the outputs that the model declares.
     */
    outputs?: readonly string[] | undefined;
    /**
     * `loadModel` calls this while it packs or copies the constants of the model, and at the end.
     * With this option, loading in this thread lets other tasks run about 60 times per second. If
     * the function throws, loading ends with this error. Default: none.
     * @param done the fraction of the bytes of the constants that is loaded, from 0 to 1
     */
    progress?: ((done: number) => void) | undefined;
  };

const createOptions = ['threads', 'simd', 'determinism', 'vectors', 'assets', 'maxMemory'] as const;

/**
 * Loads a model in the format of ONNX, so that it can run. It checks the graph, computes
 * constant nodes, and packs constant weights. Afterwards, neither the bytes nor the OnnxModel is
 * needed.
 *
 * @example
 * const model = await loadModel(await (await fetch('digits.onnx')).arrayBuffer());
 * const { scores } = await model.run({ x: { data: pixels, shape: [1, 784] } });
 * model.dispose();
 *
 * @param source the bytes of an .onnx file, which must not change until the promise settles; or
 * the object that `readOnnx` returned, not a copy
 * @param options all have defaults
 * @returns a promise of the model. The caller must `dispose()` of it
 * @throws by rejection: UnsupportedError, which lists all operators that are missing, and the nodes
 * that are not supported for another reason; ArgumentError, DTypeError, ShapeError and
 * PackMismatchError, which name the node at fault; and what `readOnnx` and `createGemm` throw
 *
 * @category Models
 */
export async function loadModel(
  source: Uint8Array | ArrayBuffer | OnnxModel,
  options: LoadOptions = {},
): Promise<Model> {
  const op = 'loadModel';
  const names = ['wg', 'externalData', 'outputs', 'progress', ...createOptions];
  const read = readOptions(op, options, names) as LoadOptions;
  const { wg: given, externalData, outputs: chosen, progress } = read; // each once
  const settings = Object.fromEntries(createOptions.map((name) => [name, read[name]]));
  checkFetch(op, externalData);
  const outputs = readOutputs(chosen);
  const tell = progressOf(progress);
  const bytes = readSource(source);
  if (given !== undefined) {
    checkInstance(given);
    const name = createOptions.find((name) => settings[name] !== undefined);
    if (name !== undefined)
      throw new ArgumentError(op, name, `${op}: pass either wg or ${name}, not both`);
  }
  // The instance starts while the model is read.
  const starting = Promise.resolve(given ?? createGemm({ ...settings, models: true }));
  starting.catch(() => undefined); // the start may fail before it is awaited
  let prepacked: Prepacked | undefined;
  try {
    let packable = new Map() as ReturnType<typeof findPackable>;
    const check = (model: OnnxModel) => {
      packable = findPackable(checkGraph(model, outputs));
      return new Set(packable.keys());
    };
    const left: LeftData[] = [];
    const model = bytes
      ? await readChecked(bytes, externalData, check, left)
      : (source as OnnxModel);
    const graph = checkGraph(model, outputs);
    const wg = await starting;
    const link = given && linkOf(given);
    const bytesOf = (parts: Iterable<number>) => Array.from(parts).reduce((sum, n) => sum + n, 0);
    const externalBytes = bytesOf(left.map(({ length }) => length));
    const others = Array.from(graph.constants.values(), ({ data }) => data.byteLength);
    const share = externalBytes / (externalBytes + bytesOf(others)) || 0;
    const instance = link ?? (cores.get(wg) as Core);
    prepacked = await packExternal(instance, packable, left, (done) =>
      tell((share * done) / externalBytes),
    );
    const rest = (done: number) => 1 - (1 - done) * (1 - share);
    if (given && link) {
      const after = progress && ((done: number) => progress(rest(done)));
      const runner = await loadInWorker(given, link, model, outputs, after, prepacked);
      return new LoadedModel(runner, undefined);
    }
    const session = await Session.load(graph, wg as Gemm, (done) => tell(rest(done)), prepacked);
    return new LoadedModel(session, given ? undefined : wg);
  } catch (error) {
    if (prepacked) disposeAll(prepacked);
    if (given === undefined)
      void starting.then(
        (started) => started.dispose(),
        () => undefined,
      );
    throw error;
  }
}

/** The bytes of a model; undefined if `source` is a model that was read. */
function readSource(source: unknown): Uint8Array | undefined {
  const op = 'loadModel';
  if (!isReadable(source) || !has(source, 'graph')) return givenBytes(op, 'source', source);
  if (models.has(source)) return undefined;
  const found = 'source is not a model that readOnnx() returned';
  const advice = 'pass that model, not a copy, or bytes';
  throw new ArgumentError(op, 'source', `${op}: ${found}; ${advice}`);
}

/** Milliseconds after which loading lets other tasks run. */
const turn = 16;

/** Checks the option `progress`. Returns a function that calls it, and lets other tasks run. */
function progressOf(progress: unknown): Progress {
  const op = 'loadModel';
  if (progress === undefined) return () => undefined;
  if (typeof progress !== 'function') {
    const found = `progress is ${describe(progress)}; it must be a function`;
    throw new ArgumentError(op, 'progress', `${op}: ${found}`);
  }
  let last = performance.now();
  return async (done) => {
    (progress as (done: number) => void)(done);
    if (performance.now() - last < turn) return;
    await new Promise((resolve) => setTimeout(resolve));
    last = performance.now();
  };
}

/** The names in the option `outputs`. */
function readOutputs(outputs: unknown): readonly string[] | undefined {
  if (outputs === undefined) return undefined;
  const isArray = isList(outputs);
  const names: unknown[] = [];
  let areNames = isArray && outputs.length > 0;
  // By index, as a shape: an array may have another iterator, or be a long one of holes.
  for (let i = 0; isArray && i < outputs.length && (areNames || i < 20); ++i) {
    names.push(outputs[i]);
    areNames &&= typeof names[i] === 'string';
  }
  if (areNames && new Set(names).size === names.length) return names as string[];
  const shown = names.slice(0, 20).map(describe).join(', ');
  const found = isArray ? `[${shown}]` : describe(outputs);
  throw new ArgumentError(
    'loadModel',
    'outputs',
    `loadModel: outputs is ${found}; it must be an array of one or more different names`,
  );
}

/** Throws unless a value is an instance of this copy of the library that has `models`. */
function checkInstance(wg: unknown): void {
  const op = 'loadModel';
  const core = isReadable(wg) ? cores.get(wg) : undefined;
  const link = isReadable(wg) ? linkOf(wg) : undefined;
  core?.checkAlive(op);
  link?.checkAlive(op);
  if (core ? core.module.operatorName !== undefined : link?.models) return;
  let message = 'wg has no operators of models; create it by createGemm({ models: true })';
  if (!core && !link) {
    const other = 'an instance of another copy of wgemm, such as wgemm/inline';
    const found = resembles(wg) ? other : describe(wg);
    message = `wg is ${found}; it must be an instance of wgemm or of wgemm/worker`;
  }
  throw new ArgumentError(op, 'wg', `${op}: ${message}`);
}

/** The link to the worker of an instance; undefined for another value. */
const linkOf = (wg: object) => links.get(wg) as InstanceLink | undefined;

/** Whether a value is an instance of another copy of the library. A proxy of one is not. */
function resembles(wg: unknown): boolean {
  const names = 'pack,explain,matmul,gemm,qgemm,matmulNBits,alloc,memory'.split(',');
  const instance = wg as Record<string, unknown>;
  if (!isReadable(wg) || !names.every((name) => typeof instance[name] === 'function')) return false;
  try {
    void instance.disposed; // throws for a proxy of an instance, or an object made from one
    return true;
  } catch {
    return false;
  }
}
