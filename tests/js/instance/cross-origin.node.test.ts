/**
 * From what address a worker of the web starts. Workers of the web and the page's origin are
 * stand-ins here; `npm run test:browsers -- --cdn` has the real ones.
 */
import { resolveObjectURL } from 'node:buffer';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createGemm } from 'wgemm';
import { expectError, rejected } from '../support/errors.js';

/** Starts a thread from a script, in a page of an origin, in which the worker fails. */
async function startIn(origin: string, script: string) {
  const getBuiltinModule = process.getBuiltinModule.bind(process);
  vi.spyOn(process, 'getBuiltinModule').mockImplementation((name: string) =>
    name === 'node:worker_threads' ? undefined : getBuiltinModule(name),
  );
  const started: { address: string; text: Promise<string> | undefined }[] = [];
  vi.stubGlobal('origin', origin);
  vi.stubGlobal('location', { href: 'https://app.example/app/index.html' });
  vi.stubGlobal(
    'Worker',
    class extends EventTarget {
      constructor(address: URL | string) {
        super();
        started.push({ address: String(address), text: resolveObjectURL(String(address))?.text() });
        setTimeout(() => this.dispatchEvent(new Event('error')));
      }
      postMessage() {}
      terminate() {}
    },
  );
  const assets = (file: string) =>
    file.endsWith('.wasm') ? import.meta.resolve(`wgemm/assets/${file}`) : script;
  const error = await rejected(createGemm({ threads: 2, assets }));
  expect(started).toHaveLength(1);
  const { address, text } = started[0] as (typeof started)[0];
  return { error, address, text: await text };
}

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const failure = { code: 'WORKER', op: 'createGemm', argument: 'threads' } as const;
const own = 'https://app.example';
const cdn = 'https://cdn.example';

describe('a worker of the web', () => {
  it.each([
    ['of the origin of the page', `${own}/lib/wgemm-thread.js`],
    ['relative to the page', '../lib/wgemm-thread.js'],
    ['that has no origin', 'data:text/javascript,0'],
    ['that is a blob of the page', `blob:${own}/8a9f743e-6e18-4f27-bd5f-93fc3689acef`],
  ])('starts from a script %s itself', async (_, script) => {
    const { error, address } = await startIn(own, script);
    expect(address).toBe(script);
    expectError(error, { ...failure, says: ['put wgemm-thread.js next to this script'] });
  });

  it.each([
    ['another host', own, `${cdn}/wgemm-thread.js`],
    ['another port', `${own}:8080`, `${own}/wgemm-thread.js`],
    ['another scheme', 'http://app.example', `${own}/wgemm-thread.js`],
    ['any host for a page in a sandbox', 'null', `${own}/wgemm-thread.js`],
  ])('starts from a blob if the script is of %s', async (_, origin, script) => {
    const { error, address, text } = await startIn(origin, script);
    expect(address).toMatch(/^blob:/);
    expect(text).toContain(`import("${script}")`);
    expect(resolveObjectURL(address), 'it must be revoked').toBeUndefined();
    const sources = `script-src 'wasm-unsafe-eval' ${new URL(script).origin}`;
    expectError(error, { ...failure, says: [script, 'worker-src blob:', sources] });
  });
});
