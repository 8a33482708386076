/** The errors of createGemm: of its options, and of the files that it loads. */
import { describe, expect, it } from 'vitest';
import { createGemm, type CreateOptions, GemmError } from 'wgemm';
import { bytesAt, sourcesOf } from '../support/assets.js';
import { expectError, notCreated, type Wanted } from '../support/errors.js';
import { expectGemm, float32 } from '../support/tensors.js';

const square = float32([2, 2], 1, 2, 3, 4);

describe('createGemm', () => {
  const wasm = new URL(import.meta.resolve('wgemm/assets/wgemm-simd128.wasm'));

  const argument = (argument: string, ...says: string[]): Wanted => ({
    code: 'ARGUMENT',
    op: 'createGemm',
    argument,
    says,
  });
  const cases: [string, unknown, Wanted][] = [
    ['options that are a number', 5, argument('options', '5', 'an object')],
    ['an unknown option', { thread: 1 }, argument('thread', '"thread"', 'not known', 'threads')],
    ['threads: 0', { threads: 0 }, argument('threads', '0', "from 1 to 64, or 'auto'")],
    [
      'threads: a fraction',
      { threads: 1.5 },
      argument('threads', '1.5', "from 1 to 64, or 'auto'"),
    ],
    ['threads: a string', { threads: '1' }, argument('threads', '"1"', "from 1 to 64, or 'auto'")],
    ['threads: null', { threads: null }, argument('threads', 'null', "from 1 to 64, or 'auto'")],
    ['threads: 65', { threads: 65 }, argument('threads', '65', "from 1 to 64, or 'auto'")],
    ['simd: an unknown one', { simd: 'avx' }, argument('simd', '"avx"', "'simd128'")],
    ['simd: an object', { simd: {} }, argument('simd', 'an object', "'simd128'")],
    [
      'determinism: an unknown one',
      { determinism: true },
      argument('determinism', 'true', "'strict'"),
    ],
    ['vectors: 64', { vectors: 64 }, argument('vectors', '64', "16, 32 or 'auto'")],
    ['vectors: a string', { vectors: '32' }, argument('vectors', '"32"', "16, 32 or 'auto'")],
    ['vectors: null', { vectors: null }, argument('vectors', 'null', "16, 32 or 'auto'")],
    [
      'maxMemory: 0',
      { maxMemory: 0 },
      argument('maxMemory', '0', 'a whole number of bytes, 1 or more'),
    ],
    [
      'maxMemory: a fraction',
      { maxMemory: 0.5 },
      argument('maxMemory', '0.5', 'a whole number of bytes'),
    ],
    [
      'maxMemory: infinity',
      { maxMemory: Infinity },
      argument('maxMemory', 'Infinity', 'a whole number of bytes'),
    ],
    [
      'maxMemory: a bigint',
      { maxMemory: 1n },
      argument('maxMemory', '1n', 'a whole number of bytes'),
    ],
    ['models: a number', { models: 1 }, argument('models', '1', 'it must be a boolean')],
    ['models: null', { models: null }, argument('models', 'null', 'it must be a boolean')],
    [
      'assets: an address',
      { assets: 'https://example.com' },
      argument('assets', '"https://example.com"', 'a function'),
    ],
    ['assets: null', { assets: null }, argument('assets', 'null', 'a function')],
    [
      'assets that give nothing',
      { assets: () => undefined },
      argument('assets', 'undefined', 'a URL, bytes or a WebAssembly.Module'),
    ],
    [
      'assets that give an object',
      { assets: () => ({}) },
      argument('assets', 'an object', 'a URL, bytes or a WebAssembly.Module'),
    ],
  ];
  it.each(cases)('refuses %s', async (_, options, wanted) => {
    expectError(await notCreated(options), wanted);
  });

  it.each([
    undefined,
    null,
    {},
    { threads: 1 },
    { threads: 'auto' },
    { simd: 'simd128' },
    { determinism: 'strict' },
    { vectors: 16 },
    { vectors: 32 },
    { vectors: 'auto' },
    { models: false },
    { models: true },
    { simd: 'auto', determinism: 'fast', maxMemory: 2 ** 53 - 1 },
  ])('takes %o', async (options) => {
    const instance = await createGemm(options as CreateOptions);
    expectGemm(instance, square, square);
    instance.dispose();
  });

  it('asks assets for the file by its name, and takes addresses, bytes and modules of it', async () => {
    const bytes = await bytesAt(wasm);
    const asked: string[] = [];
    for (const source of sourcesOf(wasm, bytes)) {
      for (const answer of [source, Promise.resolve(source)]) {
        const instance = await createGemm({
          simd: 'simd128',
          assets(file) {
            asked.push(file);
            return answer;
          },
        });
        expectGemm(instance, square, square);
        instance.dispose();
      }
    }
    expect(asked).toEqual(Array(12).fill('wgemm-simd128.wasm'));
  });

  it('says so if a file is not there, or is not what it should be', async () => {
    const load = (...says: (string | RegExp)[]): Wanted => ({
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says,
    });
    const absent = new URL('absent.wasm', wasm);
    expectError(
      await notCreated({ assets: () => absent }),
      load(absent.href, /ENOENT|404/, 'option assets'),
    );
    expectError(
      await notCreated({ assets: () => 'not an address' }),
      load('not an address', 'cannot be fetched'),
    );
    const garbage = await notCreated({ simd: 'simd128', assets: () => new Uint8Array(100) });
    expectError(garbage, load('wgemm-simd128.wasm is not WebAssembly', 'option assets'));
    const page = new TextEncoder().encode('<!doctype html>');
    expectError(
      await notCreated({ simd: 'simd128', assets: () => page }),
      load('wgemm-simd128.wasm is a page of HTML, not WebAssembly', 'option assets'),
    );
    expect((garbage as GemmError).cause).toBeInstanceOf(WebAssembly.CompileError);
    for (const [begin, what] of [
      ['', 'an empty file'],
      ['version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n', 'a pointer of Git LFS'],
      ['{"error":404}', 'JSON'],
      ['\x1f\x8b\x08\0', 'gzip'],
      ['Not found', 'text'],
    ] as const) {
      const bytes = Uint8Array.from(begin, (letter) => letter.charCodeAt(0));
      expectError(
        await notCreated({ simd: 'simd128', assets: () => bytes }),
        load(`wgemm-simd128.wasm is ${what}, not WebAssembly (`),
      );
    }
    expectError(await notCreated({ assets: () => new Response('') }), {
      ...load(
        /^createGemm: assets\("wgemm-\w+.wasm"\) returned an object; .*: await its arrayBuffer/,
      ),
      code: 'ARGUMENT',
      argument: 'assets',
    });
    const truncated = (await bytesAt(wasm)).subarray(0, 5000);
    expectError(await notCreated({ assets: () => truncated }), load('does not compile'));
  });

  it('says so if the module is not of this library', async () => {
    // Without imports or exports; it compiles, and it starts.
    const empty = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
    const outcome = Promise.race([
      notCreated({ simd: 'simd128', assets: () => empty }),
      new Promise((resolve) => setTimeout(resolve, 2000, 'still waiting')),
    ]);
    expectError(await outcome, {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: ['wgemm-simd128.wasm', 'does not start'],
    });
  });

  it('lets an error of the caller’s own assets through', async () => {
    const mine = new RangeError('mine');
    const assets = () => {
      throw mine;
    };
    expect(await notCreated({ assets })).toBe(mine);
    expect(await notCreated({ assets: () => Promise.reject(mine) })).toBe(mine);
  });

  it('works after it failed', async () => {
    const instance = await createGemm();
    expectGemm(instance, square, square);
    instance.dispose();
  });
});
