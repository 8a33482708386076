/** Errors when Node reads or fetches the files of the package. */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { describe, it } from 'vitest';
import { createGemm } from 'wgemm';
import { expectError, notCreated, type Wanted } from '../support/errors.js';
import { expectGemm, float32 } from '../support/tensors.js';

const wasm = new URL(import.meta.resolve('wgemm/assets/wgemm-simd128.wasm'));
const square = float32([2, 2], 1, 2, 3, 4);

describe('createGemm', () => {
  it('fetches from a server, and says what it answered if that fails', async () => {
    const bytes = await readFile(wasm);
    const server = createServer((request, response) =>
      response.writeHead(request.url === '/wgemm-simd128.wasm' ? 200 : 404).end(bytes),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const instance = await createGemm({
      simd: 'simd128',
      assets: (file) => new URL(`http://127.0.0.1:${port}/${file}`),
    });
    expectGemm(instance, square, square);
    const missing = `http://127.0.0.1:${port}/elsewhere`;
    expectError(await notCreated({ assets: () => missing }), {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: [missing, '404', 'option assets'],
    });
    await new Promise((resolve) => server.close(resolve).closeAllConnections());
    expectError(await notCreated({ assets: () => missing }), {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: [missing, 'cannot be fetched'],
    });
  });

  it('says so if a server declares a pointer of Git LFS to be WebAssembly', async () => {
    const server = createServer((_, response) =>
      response
        .writeHead(200, { 'Content-Type': 'application/wasm' })
        .end('version https://git-lfs.github.com/spec/v1\n'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const where = `http://127.0.0.1:${port}/wgemm-relaxed.wasm`;
    expectError(await notCreated({ assets: () => where }), {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: [`${where} is a pointer of Git LFS, not WebAssembly (`],
    });
    await new Promise((resolve) => server.close(resolve).closeAllConnections());
  });

  it('says which setting a development server needs that answers a page', async () => {
    const server = createServer((_, response) =>
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html>'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const setting = /; set optimizeDeps: \{ exclude: \['wgemm'\] \} in vite\.config\.js$/;
    for (const [folder, advice] of [
      ['node_modules/.vite/deps', setting],
      ['_nuxt/node_modules/.cache/vite/client/deps', setting],
      ['invite/deps', /; serve the file next to the script \(in Angular.* option assets$/],
      ['.vite/build', /; serve the file next to the script \(in Angular.* option assets$/],
    ] as const) {
      const where = `http://127.0.0.1:${port}/${folder}/wgemm-relaxed.wasm`;
      expectError(await notCreated({ assets: () => where }), {
        code: 'LOAD',
        op: 'createGemm',
        argument: '',
        says: [`${where} is a page of HTML, not WebAssembly (`, advice],
      });
    }
    await new Promise((resolve) => server.close(resolve).closeAllConnections());
    const gone = `http://127.0.0.1:${port}/node_modules/.vite/deps/wgemm-relaxed.wasm`;
    expectError(await notCreated({ assets: () => gone }), {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: [`${gone} cannot be fetched (`, setting],
    });
  });

  it('says so if an address of a file has no path', async () => {
    const wanted: Wanted = {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: ['file:', 'cannot be fetched'],
    };
    expectError(await notCreated({ assets: () => 'file:' }), wanted);
  });
});
