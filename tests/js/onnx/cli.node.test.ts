/** `npx wgemm model.onnx` */
import { exec, execFile, spawn } from 'node:child_process';
import {
  chmod,
  mkdir,
  mkdtemp,
  open,
  readFile,
  rm,
  rmdir,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeGraph, type ModelSpec } from '../../peers/onnx-model.mjs';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'wgemm-cli-'));
});
afterAll(() => rm(folder, { recursive: true }));

const program = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));
const manifest = new URL('../../../package.json', import.meta.url);

interface Ended {
  code: number;
  said: string;
  failed: string;
}

function run(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { cwd: folder }, (error, said, failed) =>
      resolve({ code: error ? Number(error.code) : 0, said, failed }),
    );
  });
}

async function save(name: string, model: ModelSpec): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, encodeGraph(model));
  return path;
}

const weights = Float32Array.from({ length: 12 }, (_, i) => i);
const dense: ModelSpec = {
  inputs: [{ name: 'x', dtype: 'float32', shape: ['batch', 4] }],
  outputs: [{ name: 'y', dtype: 'float32', shape: ['batch', 3] }],
  initializers: [{ name: 'w', dtype: 'float32', shape: [4, 3], data: weights }],
  nodes: [{ op: 'MatMul', name: 'fc', inputs: ['x', 'w'], outputs: ['y'] }],
};

it('prints the products', async () => {
  await save('dense.onnx', dense);
  const { code, said, failed } = await run('dense.onnx', '--runs', '2');
  expect(failed).toBe('');
  expect(code).toBe(0);
  expect(said).toMatch(/^dense\.onnx: 0\.\d kB, 1 node, opset 17, made by "wgemm tests 1"\n/);
  expect(said).toContain('  in   "x" float32 ["batch", 4]\n  out  "y" float32 ["batch", 3]\n');
  expect(said).toMatch(/^node +operator +product +types +plan +ms$/m);
  expect(said).toMatch(
    /^"fc" +MatMul +\[1, 4\] x \[4, 3\] = \[1, 3\] +float32 +f32_\S+, GEMV, B packed +\d/m,
  );
  expect(said).toMatch(/^1 product: [\d.e-]+ ms \(\d+% of the run\); the run: [\d.e-]+ ms$/m);
});

it('prints what one call computes for several nodes, and results that are not products', async () => {
  const addend = { name: 'b', dtype: 'float32', shape: [3], data: Float32Array.of(1, 2, 3) };
  await save('fused.onnx', {
    ...dense,
    initializers: [...(dense.initializers ?? []), addend],
    nodes: [
      { op: 'MatMul', name: 'fc', inputs: ['x', 'w'], outputs: ['h'] },
      { op: 'Add', inputs: ['h', 'b'], outputs: ['i'] },
      { op: 'Relu', inputs: ['i'], outputs: ['y'] },
    ],
  });
  expect((await run('fused.onnx', '--runs=1')).said).toContain('"fc"  MatMul + Add + Relu  ');
  await save('relu.onnx', {
    inputs: [{ name: 'x', dtype: 'int32', shape: [] }],
    outputs: [{ name: 'y', dtype: 'float32' }],
    nodes: [{ op: 'Cast', inputs: ['x'], outputs: ['y'], attributes: { to: 1 } }],
  });
  const { said, failed } = await run('relu.onnx', '--runs=1');
  expect(failed).toBe('');
  expect(said).toContain('  in   "x" int32 []\n  out  "y" float32 of any shape\n\nnode ');
  expect(said).toMatch(/^"y" +Cast +[\d.e-]+\nno products; /m);
});

it('prints each step, what it fuses, and what runs in JavaScript', async () => {
  const scalar = (name: string, value: number) => ({
    ...{ name, dtype: 'float32', shape: [] },
    data: Float32Array.of(value),
  });
  await save('steps.onnx', {
    ...dense,
    initializers: [
      ...(dense.initializers ?? []),
      scalar('root', Math.SQRT2),
      scalar('one', 1),
      scalar('half', 0.5),
      scalar('third', 1 / 3),
    ],
    nodes: [
      { op: 'MatMul', name: 'fc', inputs: ['x', 'w'], outputs: ['a'] },
      { op: 'Div', inputs: ['a', 'root'], outputs: ['b'] },
      { op: 'Erf', inputs: ['b'], outputs: ['c'] },
      { op: 'Add', inputs: ['c', 'one'], outputs: ['d'] },
      { op: 'Mul', inputs: ['a', 'd'], outputs: ['e'] },
      { op: 'Mul', name: 'gelu', inputs: ['e', 'half'], outputs: ['f'] },
      { op: 'Pow', name: 'pow', inputs: ['f', 'third'], outputs: ['y'] },
    ],
  });
  const { said, failed } = await run('steps.onnx', '--runs=1');
  expect(failed).toBe('');
  expect(said).toMatch(/^"fc" +MatMul +\[1, 4\]/m);
  expect(said).toMatch(
    /^"gelu" +com\.microsoft\.Gelu \+ Div \+ Erf \+ Add \+ Mul \+ Mul +[\d.e-]+$/m,
  );
  expect(said).toMatch(/^"pow" +Pow +JavaScript +[\d.e-]+$/m);
});

it('names missing operators before it reads data in other files', async () => {
  await save('missing.onnx', {
    ...dense,
    initializers: [
      { name: 'w', dtype: 'float32', shape: [4, 3], external: { location: 'nowhere' } },
    ],
    nodes: [
      { op: 'MatMul', inputs: ['x', 'w'], outputs: ['h'] },
      { op: 'Odd', name: 'odd', inputs: ['h'], outputs: ['y'] },
    ],
  });
  const { code, said, failed } = await run('missing.onnx');
  expect({ code, failed }).toEqual({
    code: 1,
    failed: 'wgemm: loadModel: 1 operator is missing:\n  Odd (node "odd")\n',
  });
  expect(said).toContain('2 nodes');
});

it('leaves inputs that have defaults to these', async () => {
  const spec: ModelSpec = {
    ...dense,
    inputs: [...(dense.inputs ?? []), { name: 'shape', dtype: 'int64', shape: [2] }],
    initializers: [
      ...(dense.initializers ?? []),
      { name: 'shape', dtype: 'int64', shape: [2], data: BigInt64Array.of(-1n, 4n) },
    ],
    nodes: [{ op: 'Reshape', inputs: ['x', 'shape'], outputs: ['r'] }, ...(dense.nodes ?? [])],
  };
  spec.nodes = spec.nodes.map((node) =>
    node.op === 'MatMul' ? { ...node, inputs: ['r', 'w'] } : node,
  );
  await save('defaults.onnx', spec);
  const { code, said, failed } = await run('defaults.onnx', '--dim', 'batch=2');
  expect(failed).toBe('');
  expect(code).toBe(0);
  expect(said).toContain('[2, 4] x [4, 3] = [2, 3]');
});

it('takes the sizes of dynamic dimensions, and threads', async () => {
  await save('dense.onnx', dense);
  const { said } = await run('--dim', 'batch=7', '--threads=2', '--runs=1', 'dense.onnx');
  expect(said).toContain('[7, 4] x [4, 3] = [7, 3]');
});

it('reads files next to the model, and no others', async () => {
  const external = { location: 'weights.bin', offset: 8 };
  const initializers = [{ name: 'w', dtype: 'float32', shape: [4, 3], external }];
  const path = await save('far.onnx', { ...dense, initializers });
  expect(await run(path)).toMatchObject({
    code: 1,
    failed: 'wgemm: "weights.bin", next to the model, does not exist\n',
  });
  const odd = [{ ...initializers[0], external: { location: 'a\0b' } } as never];
  await save('null.onnx', { ...dense, initializers: odd });
  expect(await run('null.onnx')).toMatchObject({
    code: 1,
    failed: 'wgemm: "a\\u0000b", next to the model, cannot be opened: ERR_INVALID_ARG_VALUE\n',
  });
  const bytes = new Uint8Array(56);
  await mkdir(join(folder, 'weights.bin'));
  expect(await run(path)).toMatchObject({
    code: 1,
    failed: 'wgemm: "weights.bin", next to the model, is a folder; expected a file\n',
  });
  await rmdir(join(folder, 'weights.bin'));
  await writeFile(join(folder, 'weights.bin'), bytes.subarray(1));
  expect(await run(path)).toMatchObject({
    code: 1,
    failed: 'wgemm: "weights.bin" has 55 bytes; the model needs 48 bytes from offset 8\n',
  });
  await writeFile(join(folder, 'weights.bin'), bytes);
  expect(await run(path, '--runs', '1')).toMatchObject({ code: 0, failed: '' });
  for (const location of ['../weights.bin', '/etc/passwd', 'a/../../b', '..']) {
    const away = [{ ...initializers[0], external: { location } } as never];
    const path = await save('away.onnx', { ...dense, initializers: away });
    expect(await run(path)).toMatchObject({
      code: 1,
      failed: `wgemm: the model names "${location}", which is outside the folder of the model\n`,
    });
  }
});

it('lists the operators that are missing, and the nodes that are not supported', async () => {
  const nodes = [
    ...dense.nodes,
    { op: 'Odd', name: 'first\u001b[31m', domain: 'own', inputs: ['y'], outputs: ['p'] },
    { op: 'Odd', domain: 'own', inputs: ['p'], outputs: ['q'] },
    {
      op: 'Odd\u001b[31m',
      domain: 'own',
      inputs: ['q'],
      outputs: ['a;\n node b; node c"), d'],
    },
    { op: 'Relu', inputs: ['y'], outputs: ['r'], attributes: { alpha: 1 } },
    { op: 'Cast', inputs: ['y'], outputs: ['s'], attributes: { to: 8 } },
  ];
  const outputs = ['y', 'a;\n node b; node c"), d', 'r', 's'].map((name) => ({
    name,
    dtype: 'float32',
  }));
  await save('odd.onnx', { ...dense, opsets: { '': 17, own: 1 }, nodes, outputs });
  const { code, said, failed } = await run('odd.onnx');
  expect(code).toBe(1);
  expect(said).toContain('odd.onnx');
  expect(failed.split('\n')).toEqual([
    'wgemm: loadModel: 2 operators are missing:',
    '  own.Odd (2 nodes, the first is "first\\u001b[31m"),',
    '  own.Odd?[31m (node "a;\\n node b; node c\\"), d");',
    '  2 nodes are not supported:',
    '  node Relu "r" (by its output) has the attribute "alpha", which is not supported in opset 17;',
    '  node Cast "s" (by its output) casts to 8, the type string, which wgemm does not have;',
    '  to load the outputs that do not need them, give --output: "y"',
    '',
  ]);
  const fine = await run('odd.onnx', '--output', 'y', '--runs', '1');
  expect(fine).toMatchObject({ code: 0, failed: '' });
});

it('computes the outputs that it is given, and no others', async () => {
  await save('two.onnx', {
    ...dense,
    inputs: [...(dense.inputs ?? []), { name: 'z', dtype: 'string', shape: [1] }],
    outputs: [...(dense.outputs ?? []), { name: 'text', dtype: 'string' }],
    nodes: [
      ...dense.nodes,
      { op: 'MatMul', name: 'more', inputs: ['x', 'w'], outputs: ['h'] },
      { op: 'Upper', inputs: ['z'], outputs: ['text'] },
    ],
  });
  const { code, said, failed } = await run('two.onnx', '--output', 'y', '--runs', '1');
  expect({ code, failed }).toEqual({ code: 0, failed: '' });
  expect(said).toContain('1 product');
  const both = await run('two.onnx', '--output', 'y', '--output=h', '--runs', '1');
  expect(both.said).toContain('2 products');
  expect(await run('two.onnx', '--output', 'none')).toMatchObject({
    code: 1,
    failed:
      'wgemm: loadModel: outputs has "none", which is not a value of the model; ' +
      'its outputs are "y", "text"\n',
  });
});

it('names an input of a type that wgemm has not', async () => {
  await save('text.onnx', { ...dense, inputs: [{ name: 'x', dtype: 'string', shape: [1, 4] }] });
  const { code, failed } = await run('text.onnx');
  expect({ code, failed }).toEqual({
    code: 1,
    failed: 'wgemm: loadModel: input "x" is of type string, which wgemm does not have\n',
  });
});

it('ends quietly if nobody reads what it prints', async () => {
  await save('dense.onnx', dense);
  const child = spawn(process.execPath, [program, 'dense.onnx'], { cwd: folder });
  child.stdout.destroy();
  let failed = '';
  child.stderr.on('data', (text) => (failed += String(text)));
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect({ code, failed }).toEqual({ code: 0, failed: '' });
});

it('says its version', async () => {
  const { version } = JSON.parse(await readFile(manifest, 'utf8')) as { version: string };
  for (const option of ['--version', '-v'])
    expect(await run(option)).toEqual({ code: 0, said: `${version}\n`, failed: '' });
});

it('helps', async () => {
  for (const option of ['--help', '-h']) {
    const { code, said, failed } = await run(option);
    expect({ code, failed }).toEqual({ code: 0, failed: '' });
    expect(said).toContain('npx wgemm model.onnx [options]');
    expect(Math.max(...said.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(100);
  }
});

it.each([
  [[], 'give the path of a model'],
  [['a.onnx', 'b.onnx'], 'expected one model, found 2: "a.onnx", "b.onnx"'],
  [['--fast', 'a.onnx'], "Unknown option '--fast'"],
  [['a.onnx', '--runs', '0'], '--runs is "0"; it must be a whole number from 1'],
  [['a.onnx', '--runs'], "Option '--runs <value>' argument missing"],
  [['a.onnx', '--threads', 'two'], '--threads is "two"; it must be a whole number from 1'],
  [['a.onnx', '--dim', 'batch'], '--dim is "batch"; it must be name=size, as in batch=4'],
  [['a.onnx', '--dim', 'n=-1'], '--dim "n" is "-1"; it must be a whole number from 0'],
])('%j: bad usage', async (args, says) => {
  expect(await run(...args)).toEqual({
    code: 2,
    said: '',
    failed: `wgemm: ${says}; npx wgemm --help tells more\n`,
  });
});

it('names the dynamic dimensions of the model, if there is no such one', async () => {
  await save('dense.onnx', dense);
  expect(await run('dense.onnx', '--dim', 'n=3')).toEqual({
    code: 2,
    said: '',
    failed:
      'wgemm: --dim is "n"; it must be a dynamic dimension of the model: "batch"; ' +
      'npx wgemm --help tells more\n',
  });
});

const dynamic: ModelSpec = {
  inputs: [{ name: 'x', dtype: 'float32', shape: ['n'] }],
  outputs: [{ name: 'y', dtype: 'float32' }],
  nodes: [{ op: 'Relu', inputs: ['x'], outputs: ['y'] }],
};

it('says so if the memory is not enough for an input', async () => {
  await save('dynamic.onnx', dynamic);
  const { code, failed } = await run('dynamic.onnx', '--dim', 'n=999999999999');
  expect({ code, failed }).toEqual({
    code: 1,
    failed: 'wgemm: not enough memory for the input "x", float32 [999999999999]\n',
  });
});

it('says so if the memory is not enough for a file, or for data in another one', async () => {
  const bytes = 2 ** 43; // which take no room on the disk
  await (await open(join(folder, 'huge.onnx'), 'w')).close();
  await truncate(join(folder, 'huge.onnx'), bytes);
  const failed = `wgemm: not enough memory for ${bytes} bytes of "huge.onnx"\n`;
  expect(await run('huge.onnx')).toEqual({ code: 1, said: '', failed });
  const external = { location: 'huge.onnx' };
  const shape = [bytes / 4];
  const w = { name: 'w', dtype: 'float32', shape, external };
  await save('external.onnx', { ...dynamic, initializers: [w] });
  expect(await run('external.onnx')).toEqual({ code: 1, said: '', failed });
});

it('reads a model from a pipe', async () => {
  await save('dense.onnx', dense);
  const command = `cat dense.onnx | "${process.execPath}" "${program}" /dev/stdin`;
  const said = await new Promise((resolve) =>
    exec(command, { cwd: folder }, (_, said) => resolve(said)),
  );
  expect(said).toMatch(/^stdin: 0\.\d kB, 1 node/);
});

// With this stack a call has at most some 10,000 arguments.
it('prints any number of products', async () => {
  const names = Array.from({ length: 15_000 }, (_, i) => `p${i}`);
  await save('many.onnx', {
    ...dynamic,
    inputs: [{ name: 'x', dtype: 'float32', shape: [1, 1] }],
    initializers: [{ name: 'w', dtype: 'float32', shape: [1, 1], data: Float32Array.of(1) }],
    nodes: [
      ...names.map((name) => ({ op: 'MatMul', inputs: ['x', 'w'], outputs: [name] })),
      { op: 'Concat', inputs: names, outputs: ['y'], attributes: { axis: 0 } },
    ],
  });
  const args = ['--stack-size=100', program, 'many.onnx', '--runs', '1'];
  const options = { cwd: folder, maxBuffer: 1e8 };
  const said = await new Promise((resolve) =>
    execFile(process.execPath, args, options, (_, said, failed) => resolve(failed || said)),
  );
  expect(said).toMatch(/\n15000 products: .*\n$/);
}, 60_000);

it('says what is wrong with a file', async () => {
  const expectFailed = async (path: string, says: string) => {
    expect(await run(path)).toEqual({ code: 1, said: '', failed: `wgemm: ${says}\n` });
  };
  await expectFailed('no.onnx', '"no.onnx" does not exist');
  await expectFailed('.', '"." is a folder; expected a file');
  await expectFailed('a\u001b[31m.onnx', '"a\\u001b[31m.onnx" does not exist');
  await save('dense.onnx', dense);
  await expectFailed('dense.onnx/w', '"dense.onnx/w" cannot be opened: ENOTDIR');
  const path = await save('locked.onnx', dense);
  await chmod(path, 0);
  const isRoot = process.getuid?.() === 0; // who may read any file
  if (!isRoot)
    await expectFailed('locked.onnx', '"locked.onnx" cannot be opened: permission denied');
  await writeFile(join(folder, 'page.onnx'), '<!doctype html>');
  const { code, failed } = await run('page.onnx');
  expect(code).toBe(1);
  expect(failed).toBe('wgemm: readOnnx: bytes is a page of HTML, not a model\n');
});
