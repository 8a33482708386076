/** Models as data: what the bytes hold, and what is refused. */
import { describe, expect, it } from 'vitest';
import { type DataArray, UnsupportedError } from 'wgemm';
import { loadModel, type OnnxModel, readOnnx, type ReadOptions } from 'wgemm/onnx';
import {
  encodeGraph,
  encodeProto,
  type ModelSpec,
  modelProto,
  type Proto,
  type TensorSpec,
} from '../../peers/onnx-model.mjs';
import { expectError, rejected } from '../support/errors.js';
import { SharedBuffer } from '../support/tensors.js';

const node = { op: 'Add', inputs: ['x', 'w'], outputs: ['y'] };
const plain: ModelSpec = { nodes: [node] };

const read = (model: ModelSpec, options?: ReadOptions) => readOnnx(encodeGraph(model), options);
const readProto = (model: Proto) => readOnnx(encodeProto(model));

/** A model whose graph has these fields, too. */
function withGraph(fields: Proto): Proto {
  const model = modelProto(plain);
  return { ...model, graph: { ...model.graph, ...fields } };
}

async function readTensor(tensor: TensorSpec, options?: ReadOptions) {
  const model = await read({ nodes: [], initializers: [{ name: 'w', ...tensor }] }, options);
  return model.graph.initializers.get('w');
}

async function refusal(bytes: unknown, options?: ReadOptions): Promise<string> {
  const error = await rejected(readOnnx(bytes as Uint8Array, options));
  expectError(error, { code: 'ARGUMENT', op: 'readOnnx', argument: 'bytes', says: [] });
  return (error as Error).message;
}

const refusalOf = (fields: Proto) => refusal(encodeProto(withGraph(fields)));
const refusalOfTensor = (fields: Proto) =>
  refusalOf({ initializer: [{ name: 'w', dataType: 1, ...fields }] });

/** A field of bytes, after its number and its length. */
function prefixed(field: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const length = [];
  for (let rest = bytes.length; rest > 0; rest = Math.floor(rest / 128))
    length.push((rest % 128) | (rest >= 128 ? 0x80 : 0));
  const all = new Uint8Array(1 + length.length + bytes.length);
  all.set([8 * field + 2, ...length]);
  all.set(bytes, 1 + length.length);
  return all;
}

describe('a model', () => {
  it.each([
    [
      [
        ['', 13],
        ['', 13],
      ],
      13,
    ],
    [
      [
        ['', 9],
        ['ai.onnx', 9],
      ],
      9,
    ],
    [
      [
        ['ai.onnx', 11],
        ['', 12],
      ],
      12,
    ],
    [
      [
        ['', 12],
        ['ai.onnx', 11],
      ],
      11,
    ],
  ] as const)('has the last opset of a domain that it states twice: %j', async (opsets, wanted) => {
    const opsetImport = [['com.microsoft', 1] as const, ...opsets].map(([domain, version]) => ({
      domain,
      version,
    }));
    const model = await readProto({ ...modelProto(plain), opsetImport });
    expect(Object.fromEntries(model.opsets)).toEqual({ '': wanted, 'com.microsoft': 1 });
  });

  it('has all that its bytes say', async () => {
    const branch: ModelSpec = {
      name: 'branch',
      nodes: [{ op: 'Neg', inputs: ['x'], outputs: ['z'] }],
    };
    const inner = { dtype: 'int64', shape: [2], data: BigInt64Array.of(-1n, 5n) };
    const model = await read({
      name: 'main',
      irVersion: 10,
      opsets: { 'ai.onnx': 21, 'com.microsoft': 1 },
      metadata: { author: 'tests', __proto__: 'x' },
      nodes: [
        {
          op: 'MatMul',
          name: 'fc1',
          domain: 'ai.onnx',
          inputs: ['x', 'w', null],
          outputs: ['h'],
        },
        {
          op: 'Odd',
          domain: 'com.microsoft',
          inputs: ['h'],
          outputs: ['y', null],
          attributes: {
            int: -3,
            big: 2n ** 63n - 1n,
            float: 0.5,
            whole: { float: 2 },
            string: 'é and more than twelve bytes',
            ints: [1, -1, -(2n ** 63n)],
            floats: [0.5, -0.25],
            strings: ['a', ''],
            none: [],
            tensor: { tensor: inner },
            graph: { graph: branch },
          },
        },
      ],
      inputs: [
        { name: 'x', dtype: 'float32', shape: ['batch', undefined, 3] },
        { name: 'free', dtype: 'bool' },
      ],
      outputs: [{ name: 'y', dtype: 'string', shape: [] }],
      initializers: [{ name: 'w', dtype: 'float32', shape: [1, 2], data: Float32Array.of(1, 2) }],
    });
    const tensor = { name: '', ...inner };
    expect(model).toEqual({
      irVersion: 10,
      producer: { name: 'wgemm tests', version: '1' },
      opsets: new Map([
        ['', 21],
        ['com.microsoft', 1],
      ]),
      metadata: new Map([['author', 'tests']]),
      functions: [],
      graph: {
        name: 'main',
        nodes: [
          {
            name: 'fc1',
            op: 'MatMul',
            domain: '',
            inputs: ['x', 'w', ''],
            outputs: ['h'],
            attributes: new Map(),
          },
          {
            name: '',
            op: 'Odd',
            domain: 'com.microsoft',
            inputs: ['h'],
            outputs: ['y', ''],
            attributes: new Map<string, unknown>([
              ['int', -3],
              ['big', 2n ** 63n - 1n],
              ['float', 0.5],
              ['whole', 2],
              ['string', 'é and more than twelve bytes'],
              ['ints', [1, -1, -(2n ** 63n)]],
              ['floats', [0.5, -0.25]],
              ['strings', ['a', '']],
              ['none', []],
              ['tensor', tensor],
              [
                'graph',
                {
                  name: 'branch',
                  nodes: [
                    {
                      name: '',
                      op: 'Neg',
                      domain: '',
                      inputs: ['x'],
                      outputs: ['z'],
                      attributes: new Map(),
                    },
                  ],
                  inputs: [],
                  outputs: [],
                  values: [],
                  initializers: new Map(),
                },
              ],
            ]),
          },
        ],
        inputs: [
          { name: 'x', dtype: 'float32', shape: ['batch', undefined, 3] },
          { name: 'free', dtype: 'bool', shape: undefined },
        ],
        outputs: [{ name: 'y', dtype: 'string', shape: [] }],
        values: [],
        initializers: new Map([
          ['w', { name: 'w', dtype: 'float32', shape: [1, 2], data: Float32Array.of(1, 2) }],
        ]),
      },
    } satisfies OnnxModel);
  });

  it('has names that are names of JavaScript, too', async () => {
    const name = '__proto__';
    const model = await readProto({
      ...withGraph({
        node: [{ opType: 'constructor', attribute: [{ name, type: 2, i: 7 }], output: [name] }],
        initializer: [{ name, dataType: 1, dims: [1], floatData: [3] }],
      }),
      metadataProps: [{ key: name, value: 'x' }],
    });
    expect(model.graph.nodes[0]?.attributes.get(name)).toBe(7);
    expect(model.graph.initializers.get(name)?.data).toEqual(Float32Array.of(3));
    expect(model.metadata.get(name)).toBe('x');
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it('has names with a byte order mark, which is part of them', async () => {
    const names = ['\uFEFFx', 'x'];
    const { graph } = await readProto(withGraph({ input: names.map((name) => ({ name })) }));
    expect(graph.inputs.map(({ name }) => name)).toEqual(names);
  });

  it('may be in an ArrayBuffer, a part of an array, or shared memory', async () => {
    const bytes = encodeGraph(plain);
    const wanted = await readOnnx(bytes);
    expect(wanted.graph.nodes).toHaveLength(1);
    const around = new Uint8Array(bytes.length + 5);
    around.set(bytes, 3);
    const shared = new Uint8Array(new SharedBuffer(bytes.length));
    shared.set(bytes);
    /** Like a Buffer of Node, whose slice() is a view. */
    class Bytes extends Uint8Array {
      override slice(): never {
        return expect.fail('was called');
      }
    }
    for (const given of [
      bytes.slice().buffer,
      new Bytes(bytes),
      around.subarray(3, -2),
      shared,
      shared.buffer as unknown as ArrayBuffer,
    ])
      expect(await readOnnx(given)).toEqual(wanted);
  });

  it('is copied from shared memory, which may change at any time', async () => {
    const bytes = encodeGraph({
      nodes: [],
      initializers: [{ name: 'w', dtype: 'uint8', shape: [1], data: Uint8Array.of(7) }],
    });
    const shared = new Uint8Array(new SharedBuffer(bytes.length));
    shared.set(bytes);
    const { graph } = await readOnnx(shared);
    shared.fill(0);
    expect(graph.initializers.get('w')?.data).toEqual(Uint8Array.of(7));
  });

  it('has attributes of old models, which state no type', async () => {
    const attribute = [
      { name: 'i', i: 5 },
      { name: 'f', f: 0.5 },
      { name: 's', s: 'a' },
      { name: 'ints', ints: [1, 2] },
      { name: 'nothing' },
    ];
    const { graph } = await readProto(withGraph({ node: [{ opType: 'Odd', attribute }] }));
    expect([...(graph.nodes[0]?.attributes ?? [])]).toEqual([
      ['i', 5],
      ['f', 0.5],
      ['s', 'a'],
      ['ints', [1, 2]],
      ['nothing', null],
    ]);
  });

  it('has attributes whose value is the default, which a writer may omit', async () => {
    const attribute = [1, 2, 3, 6, 7, 8, 9, 10, 11, 13].map((type) => ({ name: `${type}`, type }));
    const { graph } = await readProto(withGraph({ node: [{ opType: 'Odd', attribute }] }));
    expect([...(graph.nodes[0]?.attributes.values() ?? [])]).toEqual([
      ...[0, 0, ''],
      ...[[], [], [], [], []],
      ...[null, null],
    ]);
  });

  it('names the functions that it defines', async () => {
    const functions = [{ name: 'f', domain: 'own' }, { name: 'g' }];
    expect((await readProto({ ...modelProto(plain), functions })).functions).toEqual([
      'own.f',
      'g',
    ]);
  });

  it('has values without a type, of other types, and of dynamic sizes', async () => {
    const dim = [{ dimValue: -1 }, { dimParam: '' }, { dimParam: 'n' }, {}];
    const input = [
      { name: 'untyped' },
      { name: 'list', type: { sequenceType: { elemType: { tensorType: { elemType: 1 } } } } },
      { name: 'new', type: { tensorType: { elemType: 99, shape: { dim } } } },
    ];
    expect((await readProto(withGraph({ input }))).graph.inputs).toEqual([
      { name: 'untyped', dtype: 'none', shape: undefined },
      { name: 'list', dtype: 'other', shape: undefined },
      { name: 'new', dtype: 'other', shape: [undefined, undefined, 'n', undefined] },
    ]);
  });

  it('may have fields that are not known', async () => {
    const known = encodeGraph(plain);
    // Field 999 in each of the wire types that there are.
    const unknown = [
      [0xb8, 0x3e, 0xff, 0x01],
      [0xb9, 0x3e, 1, 2, 3, 4, 5, 6, 7, 8],
      [0xba, 0x3e, 2, 0xff, 0xff],
      [0xbd, 0x3e, 1, 2, 3, 4],
    ].flat();
    const both = Uint8Array.of(...unknown, ...known, ...unknown);
    expect(await readOnnx(both)).toEqual(await readOnnx(known));
  });
});

const samples: [string, DataArray][] = [
  ['float32', Float32Array.of(1.5, -0, Infinity)],
  ['float64', Float64Array.of(0.1, -0, 1e300)],
  ['int32', Int32Array.of(-(2 ** 31), 2 ** 31 - 1, -1)],
  ['uint32', Uint32Array.of(2 ** 32 - 1, 0, 7)],
  ['int64', BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n, -1n)],
  ['uint64', BigUint64Array.of(2n ** 64n - 1n, 0n, 2n ** 53n + 1n)],
  ['int8', Int8Array.of(-128, 127, -1)],
  ['uint8', Uint8Array.of(255, 0, 7)],
  ['bool', Uint8Array.of(1, 0, 1)],
  ['bfloat16', Uint16Array.of(0x3f80, 0xffff, 0)],
];
const halves = Uint16Array.of(0x3c00, 0xc000, 0x7bff);

describe('tensors', () => {
  it.each(samples)('%s: raw, typed, and unaligned', async (dtype, data) => {
    const wanted = { name: 'w', dtype, shape: [3], data };
    for (const typed of [false, true]) {
      expect(await readTensor({ dtype, shape: [3], data, typed })).toEqual(wanted);
      for (let name = ''; name.length < 8; name += 'n') {
        const model = await read({ name, nodes: [], initializers: [{ ...wanted, typed }] });
        expect(model.graph.initializers.get('w')).toEqual(wanted);
      }
    }
  });

  it.each([false, true])('float16, typed: %s', async (typed) => {
    const tensor = await readTensor({ dtype: 'float16', shape: [3], data: halves, typed });
    expect(tensor?.dtype).toBe('float16');
    const { buffer, byteOffset, constructor } = tensor?.data as DataArray;
    expect(new Uint16Array(buffer as ArrayBuffer, byteOffset, 3)).toEqual(halves);
    expect(constructor.name).toBe('Float16Array' in globalThis ? 'Float16Array' : 'Uint16Array');
  });

  it('are views of the bytes if they are aligned there', async () => {
    const data = Float32Array.of(1, 2, 3);
    const views = [];
    for (let name = ''; name.length < 4; name += 'n') {
      const bytes = encodeGraph({
        name,
        nodes: [],
        initializers: [{ name: 'w', dtype: 'float32', shape: [3], data }],
      });
      const { graph } = await readOnnx(bytes);
      const found = graph.initializers.get('w')?.data;
      expect(found).toEqual(data);
      if (found?.buffer === bytes.buffer) views.push(name);
    }
    expect(views).toHaveLength(1);
  });

  it('have fields that are packed or not, and in parts', async () => {
    const each = (...data: number[]) => data.flatMap((value) => [0x38, value]); // int64_data
    const whole = (...data: number[]) => [0x3a, data.length, ...data];
    for (const parts of [
      [...each(1, 2), ...each(3)],
      whole(1, 2, 3),
      [...whole(1), ...each(2), ...whole(), ...whole(3)],
    ]) {
      // dims, data_type, name, and the elements
      const tensor = [0x08, 3, 0x10, 7, 0x42, 1, 119, ...parts];
      const graph = [0x2a, tensor.length, ...tensor];
      const model = await readOnnx(Uint8Array.of(0x3a, graph.length, ...graph));
      const data = BigInt64Array.of(1n, 2n, 3n);
      expect(model.graph.initializers.get('w')).toEqual({
        name: 'w',
        dtype: 'int64',
        shape: [3],
        data,
      });
    }
    const packedShape = [0x0a, 2, 1, 2, 0x10, 2, 0x42, 1, 119, 0x4a, 2, 8, 9];
    const graph = [0x2a, packedShape.length, ...packedShape];
    const model = await readOnnx(Uint8Array.of(0x3a, graph.length, ...graph));
    expect(model.graph.initializers.get('w')).toMatchObject({ shape: [1, 2], dtype: 'uint8' });
  });

  it('have booleans of 0 and 1 only', async () => {
    const data = Uint8Array.of(2, 0, 255);
    const wanted = Uint8Array.of(1, 0, 1);
    for (const typed of [false, true]) {
      const tensor = await readTensor({ dtype: 'bool', shape: [3], data, typed });
      // In the field there are only 32 bits, and no bytes.
      expect(tensor?.data).toEqual(wanted);
    }
    expect(data).toEqual(Uint8Array.of(2, 0, 255));
  });

  it('may be empty, or a scalar', async () => {
    const empty = { dtype: 'float32', shape: [4, 0, 2 ** 40], data: new Float32Array() };
    expect(await readTensor(empty)).toEqual({ name: 'w', ...empty });
    expect(await readTensor({ ...empty, typed: true })).toEqual({ name: 'w', ...empty });
    expect(await readTensor({ ...empty, external: { location: 'x' } })).toEqual({
      name: 'w',
      ...empty,
    });
    const scalar = { dtype: 'float32', shape: [], data: Float32Array.of(3) };
    expect(await readTensor(scalar)).toEqual({ name: 'w', ...scalar });
  });

  it.each(['string', 'int4', 'uint4', 'int16', 'uint16'])('%s: not read', async (dtype) => {
    const data = Uint8Array.of(1);
    expect(await readTensor({ dtype, shape: [2], data })).toEqual({
      name: 'w',
      dtype,
      shape: [2],
      data: undefined,
    });
  });

  it('of a type that is not known yet, and of none', async () => {
    const initializer = [{ name: 'a', dataType: 1000 }, { name: 'b' }];
    const { graph } = await readProto(withGraph({ initializer }));
    expect(graph.initializers.get('a')?.dtype).toBe('other');
    expect(graph.initializers.get('b')?.dtype).toBe('none');
  });
});

describe('external data', () => {
  const bytes = new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer);
  const tensor = { dtype: 'float32', shape: [2] };
  const wanted = { name: 'w', ...tensor, data: Float32Array.of(3, 4) };
  const location = 'weights.bin';

  it('comes from the caller', async () => {
    const asked: unknown[] = [];
    const external = { location, offset: 8, length: 8 };
    for (const externalData of [
      (part: { offset: number; length: number }) => {
        asked.push(part);
        return bytes.subarray(part.offset, part.offset + part.length);
      },
      () => Promise.resolve(bytes.slice(8).buffer),
      () => Uint8Array.of(0, ...bytes.subarray(8)).subarray(1),
    ])
      expect(await readTensor({ ...tensor, external }, { externalData })).toEqual(wanted);
    expect(asked).toEqual([external]);
  });

  it('has an offset of 0 and the length of its shape by default', async () => {
    const asked: unknown[] = [];
    const externalData = (part: unknown) => {
      asked.push(part);
      return bytes.subarray(8);
    };
    expect(await readTensor({ ...tensor, external: { location } }, { externalData })).toEqual(
      wanted,
    );
    expect(asked).toEqual([{ location, offset: 0, length: 8 }]);
  });

  it('is a view of what the caller returns', async () => {
    const data = bytes.slice(8);
    const found = await readTensor(
      { ...tensor, external: { location } },
      { externalData: () => data },
    );
    expect(found?.data?.buffer).toBe(data.buffer);
  });

  it('is refused without the option, and must have the right length', async () => {
    const external = { location };
    const initializers = [{ name: 'w', ...tensor, external }];
    const model = encodeGraph({ nodes: [], initializers });
    const wrong = { code: 'ARGUMENT', op: 'readOnnx', argument: 'externalData' } as const;
    expectError(await rejected(readOnnx(model)), {
      ...wrong,
      says: ['"w"', '"weights.bin"', 'pass'],
    });
    for (const [returned, found] of [
      [bytes, '16 bytes'],
      [new Uint8Array(7), '7 bytes'],
      [undefined, 'undefined'],
      [Float32Array.of(1, 2), 'Float32Array'],
      [new Response(''), 'await its arrayBuffer()'],
    ] as const) {
      const externalData = () => returned as Uint8Array;
      const error = await rejected(readOnnx(model, { externalData }));
      expectError(error, { ...wrong, says: ['"w"', found, '8'] });
    }
    const failure = new Error('404');
    const externalData = () => Promise.reject(failure);
    expect(await rejected(readOnnx(model, { externalData }))).toBe(failure);
    for (const given of [1, 'x', null]) {
      const error = await rejected(readOnnx(model, { externalData: given } as never));
      expectError(error, { ...wrong, says: ['it must be a function'] });
    }
  });

  it.each([
    [{}, 'without a location'],
    [{ location, offset: -1 }, 'offset "-1"'],
    [{ location, offset: '1e3' }, 'offset "1e3"'],
    [{ location, offset: '9'.repeat(20) }, 'offset "999'],
    [{ location, offset: 2 ** 53 - 1 }, 'beyond 2^53'],
    [{ location, length: 7 }, '7 bytes; its shape needs 8'],
    [{ location, length: '' }, 'length ""'],
  ])('is refused: %j', async (external, says) => {
    const initializers = [{ name: 'w', ...tensor, external }];
    const externalData = () => expect.fail('was called');
    const message = await refusal(encodeGraph({ nodes: [], initializers }), { externalData });
    expect(message).toContain('initializer "w"');
    expect(message).toContain(says);
  });

  it('is asked for only if all else is right', async () => {
    const initializers = [
      { name: 'w', ...tensor, external: { location } },
      { name: 'v', dtype: 'float32', shape: [2], data: Float32Array.of(1) },
    ];
    const externalData = () => expect.fail('was called');
    await refusal(encodeGraph({ nodes: [], initializers }), { externalData });
  });
});

describe('is refused', () => {
  it.each([undefined, null, 'model.onnx', 7, {}, [], new Float32Array(2), Promise.resolve()])(
    'bytes that are %s',
    async (bytes) => {
      expect(await refusal(bytes)).toContain('it must be a Uint8Array or an ArrayBuffer');
    },
  );

  it.each([
    ['a promise', Promise.resolve(), 'a promise, which must be awaited'],
    ['a path', 'model.onnx', 'fetch it first'],
    ['an address', new URL('https://example.com/model.onnx'), 'fetch it first'],
    ['a response', new Response(''), 'await its arrayBuffer()'],
    ['a file', new Blob([]), 'await its arrayBuffer()'],
  ])('%s instead of bytes, with advice', async (_, given, advice) => {
    expect(await refusal(given)).toMatch(/^readOnnx: bytes is .*; it must be a Uint8Array or/);
    expect(await refusal(given)).toContain(advice);
    const error = await rejected(loadModel(given as never));
    expectError(error, { code: 'ARGUMENT', op: 'loadModel', argument: 'source', says: [advice] });
  });

  it.each([
    ['', 'an empty file'],
    ['version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n', 'a pointer of Git LFS'],
    ['<!doctype html>', 'a page of HTML'],
    ['ï»¿\n<?xml version="1.0"?>', 'a page of HTML'],
    ['{"error": "not found"}', 'JSON'],
    ['Entry not found', 'text'],
    ['\x1f\x8b\x08\0', 'gzip'],
    ['PK\x03\x04', 'a zip archive, such as PyTorch writes'],
    ['\x80\x02}q', 'a pickle of Python'],
    ['\0asm\x01\0\0\0', 'WebAssembly'],
    ['GGUF\x03\0\0\0', 'GGUF'],
    ['\x40\0\0\0\0\0\0\0{"__metadata__":', 'safetensors'],
    ['\x1c\0\0\0ORTM', 'the ORT format'],
    ['\x1c\0\0\0TFL3', 'TensorFlow Lite'],
    ['\x89HDF\r\n\x1a\n', 'HDF5'],
    ['\x89PNG\r\n\x1a\n', 'an image'],
    ['\xff\xd8\xff\xe0', 'an image'],
  ])('%j: says what it is', async (begin, what) => {
    const bytes = Uint8Array.from(begin, (letter) => letter.charCodeAt(0));
    expect(await refusal(bytes)).toBe(`readOnnx: bytes is ${what}, not a model`);
  });

  it('detached bytes', async () => {
    const bytes = encodeGraph(plain);
    structuredClone(bytes, { transfer: [bytes.buffer] });
    for (const given of [bytes, bytes.buffer])
      expect(await refusal(given)).toContain('bytes is a detached array');
  });

  it.each([
    ['a length beyond the bytes', [0x3a, 5, 0, 0]],
    ['a huge length', [0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
    ['a negative length', [0x3a, ...Array<number>(9).fill(0xff), 1]],
    ['an endless number', [0x08, ...Array<number>(11).fill(0xff)]],
    ['an endless key', Array<number>(11).fill(0xff)],
    ['a cut number', [0x08, 0x80]],
    ['a cut key', [0x80]],
    ['a key without a value', [0x08]],
    ['field 0', [0, 0]],
    ['a group', [0x0b, 0x0c]],
    ['a version that is a text', [0x0a, 0]],
    ['a graph that is a number', [0x38, 0]],
    ['a graph that ends beyond the model', [0x3a, 2, 0x0a, 1]],
    ['a skipped field that ends beyond its graph', [0x3a, 2, 0x52, 1, 0, 0]],
    ['a skipped number that ends beyond its graph', [0x3a, 2, 0xf8, 0xff, 1]],
  ])('%s', async (_, bytes) => {
    expect(await refusal(Uint8Array.from(bytes))).toMatch(/^readOnnx: bytes is not a model: /);
  });

  it('a length beyond its message, by both numbers', async () => {
    expect(await refusal(Uint8Array.of(0x3a, 5, 0, 0))).toContain('5 bytes; only 2 bytes follow');
    const inner = Uint8Array.of(0x3a, 4, 0x2a, 3, 0x4a, 9, 0, 0);
    expect(await refusal(inner)).toContain('graph has a field of 3 bytes; only 2 bytes follow');
  });

  it('a model that is cut anywhere', async () => {
    const bytes = encodeGraph({
      ...plain,
      inputs: [{ name: 'x', dtype: 'float32', shape: ['n', 2] }],
      initializers: [{ name: 'w', dtype: 'float32', shape: [2], data: Float32Array.of(1, 2) }],
    });
    for (let end = 0; end < bytes.length; ++end) {
      const part = bytes.subarray(0, end);
      const result = await readOnnx(part).catch(() => undefined);
      // Only between two fields of the model itself can a cut be unseen.
      if (result) expect(result.graph).toEqual((await readOnnx(bytes)).graph);
    }
  });

  it.each<[string, Proto, string]>([
    ['a size below 0', { dims: [-1], rawData: new Uint8Array() }, 'size -1'],
    ['a size beyond 2^53', { dims: [2n ** 62n] }, 'size 4611686018427387904'],
    ['sizes whose product is huge', { dims: [2 ** 31, 2 ** 31, 2 ** 31] }, 'elements'],
    ['65 axes', { dims: Array(65).fill(1) }, '64 axes'],
    [
      'raw data that is too short',
      { dims: [2], rawData: new Uint8Array(7) },
      '7 bytes; its shape [2] needs 8',
    ],
    ['raw data that is too long', { dims: [2], rawData: new Uint8Array(9) }, '9 bytes'],
    ['too few elements', { dims: [2], floatData: [1] }, '1 elements'],
    ['too many elements', { dims: [2], floatData: [1, 2, 3] }, '3 elements'],
    ['no elements', { dims: [2] }, 'elements'],
    [
      'elements of another type',
      { dims: [2], int32Data: [1, 2] },
      'elements that are not of type float32',
    ],
    [
      'raw and typed elements',
      { dims: [1], floatData: [1], rawData: new Uint8Array(4) },
      'more than one field',
    ],
    [
      'raw and external elements',
      { dims: [1], dataLocation: 1, rawData: new Uint8Array(4) },
      'more than one field',
    ],
    [
      'an element that int8 cannot hold',
      { dims: [1], dataType: 3, int32Data: [128] },
      'element 128',
    ],
    [
      'an element that float16 cannot hold',
      { dims: [1], dataType: 10, int32Data: [-1] },
      'element -1',
    ],
    [
      'an element that uint32 cannot hold',
      { dims: [1], dataType: 12, uint64Data: [2 ** 32] },
      'element 4294967296',
    ],
  ])('an initializer with %s', async (_, fields, says) => {
    const message = await refusalOfTensor(fields);
    expect(message).toContain('graph, initializer');
    expect(message).toContain(says);
  });

  it('huge sizes before there is memory for them', async () => {
    for (const dataType of [1, 7, 9, 11])
      expect(await refusalOfTensor({ dims: [2 ** 40], dataType })).toContain('elements');
    expect(
      await refusalOfTensor({ dims: [2 ** 26, 2 ** 26], rawData: new Uint8Array() }),
    ).toContain('bytes');
  });

  it.each<[string, Proto, string]>([
    [
      'two initializers of one name',
      { initializer: [{ name: 'w' }, { name: 'w' }] },
      'two initializers "w"',
    ],
    ['an initializer without a name', { initializer: [{}] }, 'without a name'],
    ['a node without an operator', { node: [{ name: 'n' }] }, 'node 0 "n" has no operator'],
    [
      'an attribute twice',
      { node: [{ opType: 'A', attribute: [{ name: 'a' }, { name: 'a' }] }] },
      'repeats the attribute "a"',
    ],
    [
      'an attribute of a function',
      { node: [{ opType: 'A', attribute: [{ name: 'a', refAttrName: 'b' }] }] },
      'a function',
    ],
    [
      'an attribute without its tensor',
      { node: [{ opType: 'A', attribute: [{ name: 'a', type: 4 }] }] },
      '"a" has no value',
    ],
    [
      'an attribute without its graph',
      { node: [{ opType: 'A', attribute: [{ name: 'a', type: 5 }] }] },
      '"a" has no value',
    ],
  ])('%s', async (_, fields, says) => {
    expect(await refusalOf(fields)).toContain(says);
  });

  it('sparse initializers', async () => {
    const error = await rejected(readProto(withGraph({ sparseInitializer: [{ dims: [3] }] })));
    expect(error).toBeInstanceOf(UnsupportedError);
    expect((error as Error).message).toBe(
      'readOnnx: graph has sparse initializers, which are not supported',
    );
  });

  it('two graphs, and no graph', async () => {
    const bytes = encodeGraph(plain);
    expect(await refusal(Uint8Array.of(...bytes, ...bytes))).toContain('has two graphs');
    expect(await refusal(encodeProto({ irVersion: 8 }))).toContain('has no graph');
  });

  it('graphs in graphs, beyond a depth', async () => {
    const nest = (depth: number): ModelSpec =>
      depth === 0
        ? plain
        : {
            nodes: [
              { op: 'If', inputs: [], outputs: [], attributes: { a: { graph: nest(depth - 1) } } },
            ],
          };
    await read(nest(15));
    expect(await refusal(encodeGraph(nest(16)))).toContain('nested more than 16 deep');
    // The length of each is the rest of the bytes.
    const deep = new Uint8Array(3 * 10_000).map((_, i) => [0x0a, 0x2a, 0x32][i % 3] as number);
    await refusal(deep);
  });

  it('millions of tiny messages', async () => {
    const count = 2 ** 21 + 1;
    const nodes = new Uint8Array(2 * count).map((_, i) => (i % 2 === 0 ? 0x6a : 0)); // value_info
    expect(await refusal(prefixed(7, nodes))).toContain('the limit');
  });

  it('millions of numbers in attributes', async () => {
    const count = 2 ** 23;
    for (const [field, bytes] of [
      [7, new Uint8Array(4 * (count + 1))],
      [8, new Uint8Array(count + 1)],
    ] as const) {
      const attribute = prefixed(field, bytes);
      const model = prefixed(7, prefixed(1, prefixed(5, attribute)));
      expect(await refusal(model)).toContain(`more than ${count} numbers, which is the limit`);
    }
  });

  it('options that are not known', async () => {
    const error = await rejected(readOnnx(encodeGraph(plain), { externaldata: 1 } as never));
    expectError(error, { code: 'ARGUMENT', op: 'readOnnx', argument: 'externaldata', says: [] });
  });

  it('with short names in the message, however long they are', async () => {
    const name = '\u001b[31m'.repeat(10_000);
    const message = await refusalOf({ initializer: [{ name, dataType: 1, dims: [7] }] });
    expect(message.length).toBeLessThan(300);
    expect(message).not.toContain('\u001b');
  });
});
