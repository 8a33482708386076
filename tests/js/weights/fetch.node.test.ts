/** Files of weights from a server: with ranges and without, and servers that are wrong. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { packFrom, readGGUF, readSafetensors } from 'wgemm/weights';
import { encodeGGUF, encodeSafetensors } from '../../fuzz/weights-files.mjs';
import { expectError, rejected } from '../support/errors.js';

const data = Uint8Array.from({ length: 200_000 }, (_, i) => i % 251);
const gguf = encodeGGUF({ tensors: [{ name: 'w', ne: [data.length], type: 24, data }] });
const safetensors = encodeSafetensors({
  tensors: [{ name: 'w', dtype: 'U8', shape: [data.length], data }],
});

/** The range that a request asks for. */
function rangeOf({ headers }: IncomingMessage): [start: number, end: number] {
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
  return [Number(start), Number(end) + 1];
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

function withRange(bytes: Uint8Array, hidden = false): Answer {
  return (request, response) => {
    const [start, end] = rangeOf(request);
    if (start >= bytes.length) {
      response.writeHead(416, { 'Content-Range': `bytes */${bytes.length}` }).end();
      return;
    }
    const part = bytes.subarray(start, end);
    const last = start + part.length - 1;
    const range = `bytes ${start}-${last}/${bytes.length}`;
    response.writeHead(206, hidden ? {} : { 'Content-Range': range }).end(part);
  };
}

const answers: Record<string, Answer> = {
  '/model.gguf': withRange(gguf),
  '/model.safetensors': withRange(safetensors),
  '/hidden.gguf': withRange(gguf, true),
  '/short.gguf': withRange(gguf.subarray(0, -1), true),
  '/empty.gguf': withRange(new Uint8Array()),
  '/whole.gguf': (_, response) => response.writeHead(200).end(gguf),
  '/missing.gguf': (_, response) => response.writeHead(404).end('not found'),
  '/other.gguf': (_, response) =>
    response.writeHead(206, { 'Content-Range': 'bytes 1-24/1000' }).end(gguf.subarray(1, 25)),
  '/more.gguf': (_, response) => response.writeHead(206).end(gguf),
  '/broken.gguf': (_, response) => {
    response.writeHead(206, { 'Content-Length': 1000 }).write('GGUF');
    setTimeout(() => response.destroy(), 20);
  },
  '/page.gguf': (_, response) => {
    const page = '<!doctype html><title>Sign in</title>';
    response.writeHead(206).end(page);
  },
};

/** Whether the request of a page that hangs has ended. */
let hasEnded = false;
answers['/hanging.gguf'] = (_, response) => response.on('close', () => (hasEnded = true));

const asked: string[] = [];
let changed = false;
let server: Server;
let address = '';
beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.range}`);
    const answer =
      request.url === '/changing.gguf'
        ? withRange(changed ? gguf.subarray(0, -1) : gguf)
        : answers[request.url ?? ''];
    answer?.(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

it('reads a header and a tensor by their ranges', async () => {
  asked.length = 0;
  const file = await readGGUF(`${address}/model.gguf`);
  const { offset = NaN } = file.tensors.get('w') ?? {};
  const tensor = await file.tensor('w');
  expect(tensor.data).toEqual(new Int8Array(data.buffer));
  expect(asked).toEqual([
    '/model.gguf bytes=0-65535',
    `/model.gguf bytes=${offset}-${offset + data.length - 1}`,
  ]);
});

it('takes a URL', async () => {
  const file = await readSafetensors(new URL('/model.safetensors', address));
  expect((await file.tensor('w')).data).toEqual(data);
});

it('needs no Content-Range, which other origins may hide', async () => {
  const file = await readGGUF(`${address}/hidden.gguf`);
  expect((await file.tensor('w')).data).toHaveLength(data.length);
  const short = await readGGUF(`${address}/short.gguf`);
  const error = await rejected(short.tensor('w'));
  const says = ['has 200000 bytes, and only 199999 of them are in the file'];
  expectError(error, { code: 'ARGUMENT', op: 'readGGUF', argument: 'source', says });
});

it('takes a Blob from a server without ranges', async () => {
  const response = await fetch(`${address}/whole.gguf`);
  const file = await readGGUF(await response.blob());
  expect((await file.tensor('w')).data).toHaveLength(data.length);
});

it.each([
  ['whole', 'is on a server that does not answer with a range; pass a Blob instead'],
  ['missing', 'has HTTP status 404; expected 206'],
  ['other', 'answers with a range from 1 on; expected 0'],
  ['more', 'answers with more than the 65536 bytes that were asked for'],
  ['broken', 'cannot be fetched: '],
])('refuses an answer: %s', async (name, says) => {
  const error = await rejected(readGGUF(`${address}/${name}.gguf`));
  expectError(error, { code: 'LOAD', op: 'readGGUF', argument: 'source', says: [says] });
});

it('refuses other files', async () => {
  for (const [name, says] of [
    ['page', 'it is a page of HTML'],
    ['empty', 'it is an empty file'],
  ] as const) {
    const error = await rejected(readGGUF(`${address}/${name}.gguf`));
    expectError(error, { code: 'ARGUMENT', op: 'readGGUF', argument: 'source', says: [says] });
  }
});

it('notices that the file has changed', async () => {
  const file = await readGGUF(`${address}/changing.gguf`);
  changed = true;
  const error = await rejected(file.tensor('w'));
  const says = [/had \d+ bytes before and has \d+ now/];
  expectError(error, { code: 'LOAD', op: 'readGGUF', argument: 'source', says });
});

it('tells why an address cannot be fetched', async () => {
  for (const url of ['http://127.0.0.1:1/', 'nowhere', '']) {
    const error = await rejected(readSafetensors(url));
    const says = ['source cannot be fetched: '];
    expectError(error, { code: 'LOAD', op: 'readSafetensors', argument: 'source', says });
    expect((error as Error).cause).toBeInstanceOf(Error);
  }
});

it('ends a request without an answer when the signal aborts', async () => {
  const wg = await createGemm();
  const controller = new AbortController();
  const place = { type: 'F32', shape: [2, 1] };
  const { signal } = controller;
  const packing = rejected(packFrom(wg, `${address}/hanging.gguf`, place, { signal }));
  while (!asked.includes('/hanging.gguf bytes=0-7'))
    await new Promise((resolve) => setTimeout(resolve, 1));
  controller.abort();
  expect(await packing).toBe(signal.reason);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(hasEnded).toBe(true);
  wg.dispose();
});
