// node --experimental-vm-modules realms.mjs: uses all entries of the package from a realm of its own,
// as jsdom makes one for the tests of pages. Node's modules then return objects of another realm.
import assert from 'node:assert';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext, SourceTextModule } from 'node:vm';

const context = createContext({
  process,
  console,
  // jsdom has its own, too.
  URL: class URL extends globalThis.URL {},
  setTimeout,
  clearTimeout,
  setImmediate,
  performance,
});
runInContext(
  `globalThis.self = globalThis;
   globalThis.document = { baseURI: 'http://localhost/' };`,
  context,
);

const modules = new Map();
function load(url) {
  const made =
    modules.get(url) ??
    readFile(fileURLToPath(url), 'utf8').then(
      (source) =>
        new SourceTextModule(source, {
          context,
          identifier: url,
          initializeImportMeta: (meta) => (meta.url = url),
          importModuleDynamically: (specifier) => evaluated(new URL(specifier, url).href),
        }),
    );
  modules.set(url, made);
  return made;
}
async function evaluated(url) {
  const module = await load(url);
  if (module.status === 'unlinked')
    await module.link((specifier) => load(new URL(specifier, url).href));
  await module.evaluate();
  return module;
}
const entry = async (name) => (await evaluated(import.meta.resolve(name))).namespace;

const { createGemm } = await entry('wgemm');
const { createGemm: createWorkerGemm } = await entry('wgemm/worker');
const { createLinear, deserializeLinear } = await entry('wgemm/linear');
const { loadModel, readOnnx } = await entry('wgemm/onnx');
const inline = await entry('wgemm/inline');

const a = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] };
const product = [7, 10, 15, 22];
const addressOf = (file) => import.meta.resolve(`wgemm/assets/${file}`);
const bytesOf = (file) => readFile(fileURLToPath(addressOf(file)));
const name = (file) => file.endsWith('.wasm');
/** Values that `assets` may return, all of this realm and not of the realm that reads them. */
const sources = {
  'the default': undefined,
  'a path': (file) => fileURLToPath(addressOf(file)),
  'a URL': (file) => new URL(addressOf(file)),
  'a Buffer': (file) => (name(file) ? bytesOf(file) : undefined),
  'an ArrayBuffer': async (file) => new Uint8Array(await bytesOf(file)).buffer,
  'a WebAssembly.Module': async (file) => new WebAssembly.Module(await bytesOf(file)),
};

for (const [what, assets] of Object.entries(sources)) {
  for (const create of [createGemm, createWorkerGemm]) {
    const wg = await create({ assets });
    assert.deepEqual(Array.from((await wg.gemm(a, a)).data), product, what);
    wg.dispose();
  }
}
for (const create of [createGemm, createWorkerGemm]) {
  const wg = await create({ threads: 2, assets: sources['a Buffer'] });
  assert.equal(wg.info.threads, 2);
  assert.deepEqual(Array.from((await wg.gemm(a, a)).data), product);
  wg.dispose();
}

const wg = await createGemm({ models: true });
const bytes = wg.pack(a, { op: 'gemm' }).serialize();
for (const given of [Buffer.from(bytes), Uint8Array.from(bytes).buffer])
  assert.deepEqual(Array.from(wg.gemm(a, wg.deserialize(given)).data), product);

const layer = createLinear(wg, { weights: a });
const saved = Buffer.from(layer.serialize());
for (const given of [saved, new Uint8Array(saved).buffer])
  assert.deepEqual(Array.from(deserializeLinear(wg, given).run(a).data), product);

// y = MatMul(x, w), with w = [[1], [2]].
const onnx = Buffer.from(
  'Oj4KEQoBeAoBdxIBeSIGTWF0TXVsKhMIAggBEAEiCAAAgD8AAABAQgF3WgkKAXgSBAoCCAFiCQoBeRIECgIIAUICEA0=',
  'base64',
);
const far = await createWorkerGemm({ models: true });
for (const given of [onnx, new Uint8Array(onnx).buffer, await readOnnx(onnx)]) {
  for (const instance of [wg, far]) {
    const model = await loadModel(given, { wg: instance });
    const { y } = await model.run({ x: { data: Float32Array.of(3, 4), shape: [1, 2] } });
    assert.deepEqual(Array.from(y.data), [11]);
    assert(y.data instanceof runInContext('Float32Array', context));
  }
}

const alone = await inline.createGemm();
assert.deepEqual(Array.from(alone.gemm(a, a).data), product);

// An abort has the reason of this realm, and errors of this realm keep their words.
const controller = new AbortController();
const settled = Promise.allSettled([far.gemm(a, a, null, { signal: controller.signal })]);
controller.abort();
assert.equal((await settled)[0].reason.name, 'AbortError');
far.dispose();
const thrown = new TypeError('mine');
const caught = await createGemm({ assets: () => Promise.reject(thrown) }).catch((error) => error);
assert.equal(caught, thrown);
const noFile = await createGemm({ assets: () => 'nowhere.wasm' }).catch((error) => error);
assert.match(noFile.message, /^createGemm: nowhere.wasm cannot be fetched \(ENOENT: no such file/);
console.log('realms passed');
