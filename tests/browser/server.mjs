// Serves folders and files to a browser, with the headers of a test, and receives the result that
// the page posts.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, sep } from 'node:path';

/** The strictest Content-Security-Policy that the package promises to work under. */
export const strictPolicy = {
  'content-security-policy': "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
};

/** What makes a page `crossOriginIsolated`. */
export const isolation = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-resource-policy': 'same-origin',
};

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm', // a parameter would end compiling as it arrives
};

const servers = new Map(); // by origin

/**
 * Starts a server on a free port. A page posts its result as JSON to /result, and may post its
 * progress as text to /progress.
 *
 * @param folders path such as '/dist/' -> the folder whose files are there; the longest path that
 *   fits counts
 * @param files path -> text or bytes
 * @param headers of every response, or a function that returns those for a path; without
 *   `cache-control` browsers ask for every file again
 * @param port 0 for a free one
 */
export async function startServer({ folders = {}, files = {}, headers = {}, port = 0 }) {
  const prefixes = Object.keys(folders).sort((a, b) => b.length - a.length);

  async function contentOf(path) {
    if (path in files) return files[path];
    const prefix = prefixes.find((prefix) => path.startsWith(prefix));
    if (prefix === undefined) return undefined;
    const folder = join(folders[prefix], sep);
    const file = join(folder, path.slice(prefix.length), path.endsWith('/') ? 'index.html' : '');
    return file.startsWith(folder) ? await readFile(file).catch(() => undefined) : undefined;
  }

  const page = {
    progress: '',
    requested: [],
    missing: [],
    onProgress: () => {},
    onResult: () => {},
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      console.error(`browser: ${request.method} ${request.url}: ${error.stack}`);
      response.destroy();
    });
  });

  const headersOf = typeof headers === 'function' ? headers : () => headers;

  async function answer(request, response) {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    if (request.method === 'POST') {
      const text = await textOf(request);
      response.writeHead(204, headersOf(path)).end();
      if (path === '/progress') page.onProgress((page.progress = text));
      else if (path === '/result') page.onResult(JSON.parse(text));
      return;
    }
    page.requested.push({ path, at: performance.timeOrigin + performance.now() });
    const content = await contentOf(path);
    if (content === undefined) page.missing.push(path);
    const type =
      (content !== undefined && types[extname(path) || '.html']) || 'text/plain; charset=utf-8';
    response
      .writeHead(content === undefined ? 404 : 200, {
        'cache-control': 'no-store',
        ...headersOf(path),
        'content-type': type,
      })
      .end(content ?? 'not here');
  }

  await new Promise((resolve, reject) =>
    server.once('error', reject).listen(port, '127.0.0.1', resolve),
  );
  const origin = `http://127.0.0.1:${server.address().port}`;
  servers.set(origin, page);
  return {
    origin,
    url: (path) => new URL(path, origin).href,
    async close() {
      servers.delete(origin);
      await new Promise((resolve) => server.close(resolve).closeAllConnections());
    },
  };
}

/**
 * What a page told a server of this process. The caller sets `onResult` and `onProgress`, and reads
 * `progress`, `requested` ({ path, at }, in ms since 1970) and `missing` (paths).
 */
export function pageAt(url) {
  const page = servers.get(new URL(url).origin);
  if (!page) throw new Error(`no server of this process serves ${url}`);
  return Object.assign(page, {
    progress: '',
    missing: [],
    onProgress: () => {},
    onResult: () => {},
  });
}

async function textOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}
