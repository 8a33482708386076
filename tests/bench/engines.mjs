// Runs work.mjs in an engine: in a process of Node or Bun, or in a page of a browser. The page is
// cross-origin isolated, so that it has threads and a finer clock.
import { basename, join } from 'node:path';
import { fail, query, root, run } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';
import { engineNames as browsers, openIn, titleOf, versionOf } from '../browser/engines.mjs';
import { isolation, startServer } from '../browser/server.mjs';
import { runtimes } from '../package/runtimes.mjs';

const processes = {
  node: { title: 'Node', program: process.execPath },
  bun: { title: 'Bun', program: runtimes.Bun[0], needs: ['runtimes'] },
};

export const engines = [...Object.keys(processes), ...browsers];

const page = join(root, 'tests', 'browser', 'page');
const modules = join(root, 'node_modules');
const timeout = 3600; // seconds

/** Installs the engine. @returns { name, version } of it */
export async function prepareEngine(engine) {
  const { title, program, needs = [] } = processes[engine] ?? {};
  await setUp(...(program ? needs : [engine]));
  if (!program) return { name: titleOf(engine), version: await versionOf(engine) };
  const version = query(program, ['--version']) ?? fail(`bench: ${program} does not start`);
  return { name: title, version: version.trim().replace(/^v/, '') };
}

/** @param onResult called with the arguments of each tell() of work.mjs */
export function workIn(engine, settings, onResult) {
  return (engine in processes ? inProcess : inPage)(engine, settings, onResult);
}

function inProcess(engine, settings, onResult) {
  const { title, program } = processes[engine];
  return run(program, [join(import.meta.dirname, 'in-process.mjs'), JSON.stringify(settings)], {
    bound: true,
    onStatus(line) {
      const { kind, result } = JSON.parse(line);
      onResult(kind, result);
    },
    otherwise: `The bench fails in ${title}: see above why.`,
  });
}

async function inPage(engine, settings, onResult) {
  const server = await startServer({
    folders: {
      '/dist/': join(root, 'dist'),
      '/build/': join(root, 'build'),
      '/page/': page,
      '/ort/': join(modules, 'onnxruntime-web', 'dist'),
      '/tfjs/': join(modules, '@tensorflow', 'tfjs-backend-wasm', 'dist'),
    },
    files: {
      '/':
        '<!doctype html><title>bench</title><script type="module" src="/page/bench.js">' +
        '</script>',
      ...(await bundlePage()),
    },
    headers: isolation,
  });
  try {
    const url = server.url(`/?${new URLSearchParams({ settings: JSON.stringify(settings) })}`);
    const { crash } = await openIn(engine, url, {
      timeout,
      environment: { JSC_useSharedArrayBuffer: '1' }, // WebKitGTK has none by default
      onProgress(text) {
        const { kind, result } = JSON.parse(text);
        onResult(kind, result);
      },
    });
    if (crash) fail(`The bench fails in ${titleOf(engine)}: ${crash}`);
  } finally {
    await server.close();
  }
}

/** Path -> the file of the bundle. wgemm and ONNX Runtime Web start workers of their own files. */
async function bundlePage() {
  const { bundleForPage } = await import('../browser/bundle.mjs');
  const outside = {
    wgemm: '/dist/index.js',
    'wgemm/onnx': '/dist/onnx.js',
    'wgemm/weights': '/dist/weights.js',
    'onnxruntime-web': '/ort/ort.wasm.min.mjs',
    './perform.js': '/page/perform.js', // a part of other pages, too
  };
  const outputFiles = await bundleForPage({
    entryPoints: { bench: join(page, 'bench.js') },
    outdir: root,
    plugins: [
      {
        name: 'outside',
        setup({ onResolve }) {
          onResolve(
            { filter: /^(wgemm|wgemm\/(onnx|weights)|onnxruntime-web|\.\/perform\.js)$/ },
            ({ path }) => ({
              path: outside[path],
              external: true,
            }),
          );
        },
      },
    ],
  });
  return Object.fromEntries(outputFiles.map(({ path, text }) => [`/page/${basename(path)}`, text]));
}
