// node run-import.mjs ENTRY...: importing must do nothing, as a server that renders pages needs.
// Every global that could have an effect is trapped or removed, and the process must end by itself.
// For Node, whose own modules do not use the global names.
import process from 'node:process';

const touched = [];
const names = [
  ...[
    'fetch',
    'WebAssembly',
    'Worker',
    'SharedWorker',
    'XMLHttpRequest',
    'MessageChannel',
    'BroadcastChannel',
    'FinalizationRegistry',
  ],
  ...[
    'setTimeout',
    'setInterval',
    'setImmediate',
    'queueMicrotask',
    'crypto',
    'performance',
    'console',
    'Buffer',
  ],
  ...['process', 'navigator', 'window', 'document', 'self', 'location', 'localStorage'],
];
// These may be used at import without an effect: a registry is empty then. Emscripten's glue inside
// wgemm/inline reads the address of the document's script.
const harmless = ['FinalizationRegistry', 'document'];
const kept = names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
const isGone = process.argv[2] === '--gone';
for (const [name] of kept) {
  if (harmless.includes(name)) continue;
  if (isGone) delete globalThis[name];
  else {
    const get = () => {
      touched.push(name);
      return undefined;
    };
    Object.defineProperty(globalThis, name, { get, configurable: true });
  }
}
const globals = () => Reflect.ownKeys(globalThis).map(String).sort().join();
const active = () =>
  process
    .getActiveResourcesInfo()
    .filter((resource) => !/Pipe|TTY|FS/.test(resource))
    .join();
const before = { globals: globals(), active: active() };
const modules = [];
for (const entry of process.argv.slice(isGone ? 3 : 2)) modules.push(await import(entry));
await new Promise((resolve) => process.nextTick(resolve));
const after = { globals: globals(), active: active() };
for (const [name, descriptor] of kept)
  if (descriptor) Object.defineProperty(globalThis, name, descriptor);

for (const key of ['globals', 'active']) {
  if (before[key] !== after[key])
    throw new Error(`${key} before: ${before[key]}\nafter: ${after[key]}`);
}
if (touched.length > 0) throw new Error(`importing touched ${touched.join()}`);
const isEntry = ({ createGemm, createLinear, createIndex, install, loadModel, readGGUF }) =>
  createGemm ?? createLinear ?? createIndex ?? install ?? loadModel ?? readGGUF;
if (modules.length === 0 || !modules.every(isEntry))
  throw new Error('an entry without its function');
console.log('import passed');
