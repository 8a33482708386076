// A few calls, with everything that differs between runtimes: loading, memory, errors, workers.
// Runs in any runtime. The caller passes the package: it is not imported.

function expect(what, found, wanted) {
  const text = (value) =>
    JSON.stringify(value, (_, item) => (ArrayBuffer.isView(item) ? Array.from(item) : item));
  if (text(found) !== text(wanted))
    throw new Error(`${what}: expected ${text(wanted)}, found ${text(found)}`);
}

const a = { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] };
const b = { data: Float32Array.of(1, 0, 0, 1, 1, 1), shape: [3, 2] };
const square = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] };

/** A model in the format of ONNX: y = MatMul(x, w), with w = [[1], [2]]. */
const onnx = Uint8Array.from(
  atob(
    'Oj4KEQoBeAoBdxIBeSIGTWF0TXVsKhMIAggBEAEiCAAAgD8AAABAQgF3WgkKAXgSBAoCCAFiCQoBeRIECgIIAUICEA0=',
  ),
  (letter) => letter.charCodeAt(0),
);

/**
 * Tests the API of `wgemm` and `wgemm/inline`, and of `wgemm/worker`, whose calls return
 * promises instead of values. Tests layers, indexes and models if the entry has them.
 */
export async function smoke(
  {
    createGemm,
    createLinear,
    deserializeLinear,
    createIndex,
    deserializeIndex,
    loadModel,
    GemmError,
    ShapeError,
    DisposedError,
    quantize,
  },
  options,
) {
  const wg = await createGemm({ ...options, ...(loadModel && { models: true }) });

  const y = await wg.gemm(a, b, 10, { alpha: 0.5 });
  expect('gemm', [y.shape, y.dtype, y.data], [[2, 2], 'float32', [12, 12.5, 15, 15.5]]);

  const before = (await wg.memory()).inUse;
  const x = await wg.alloc('float64', [1, 2]);
  if (x.write) await x.write(Float64Array.of(3, 4));
  else x.data.set([3, 4]);
  const w = await wg.pack({ data: Float64Array.of(1, 2, 3, 4), shape: [2, 2] }, { op: 'matmul' });
  expect('matmul', (await wg.matmul(x, w)).data, [15, 22]);
  expect('syrk', (await wg.syrk(x, { alpha: 2, transA: true })).data, [18, 24, 24, 32]);
  x.dispose();
  w.dispose();
  expect('memory in use after dispose()', (await wg.memory()).inUse, before);

  const q = quantize(b, { symmetric: true, axis: 1 });
  const z = await wg.qgemm({
    a: { data: Uint8Array.of(1, 2, 3), shape: [1, 3] },
    aScale: 1,
    b: q,
    bScale: q.scale,
  });
  expect('qgemm', Array.from(z.data, Math.round), [4, 5]);

  if (createLinear) {
    const layer = await createLinear(wg, { weights: b, as: 'int8' });
    const same = await deserializeLinear(wg, await layer.serialize());
    const results = [await layer.run(a), await same.run(a)].map(({ data }) => Array.from(data));
    expect('a layer that was saved', results[1], results[0]);
    expect('a layer', results[0].map(Math.round), [4, 5, 10, 11]);
  }

  if (createIndex) {
    const index = await createIndex(wg, { dimensions: 2 });
    await index.add(Float32Array.of(1, 0, 0, 1, 3, 4), ['east', 'north', 'é']);
    const same = await deserializeIndex(wg, await index.serialize());
    const found = await same.search([0, 2], 2);
    expect(
      'a search',
      found.map(({ id }) => id),
      ['north', 'é'],
    );
    expect('a search in an index that was saved', await index.search([0, 2], 2), found);
  }

  if (loadModel) {
    const model = await loadModel(onnx, { wg });
    const { y } = await model.run({ x: { data: Float32Array.of(3, 4), shape: [1, 2] } });
    expect('a model', [y.shape, y.dtype, y.data], [[1, 1], 'float32', [11]]);
    model.dispose();
  }

  let error;
  try {
    await wg.gemm(a, a);
  } catch (caught) {
    error = caught;
  }
  expect(
    'an error',
    [error instanceof ShapeError, error instanceof GemmError, error?.argument],
    [true, true, 'B'],
  );

  wg.dispose();
  try {
    error = undefined;
    await wg.memory();
  } catch (caught) {
    error = caught;
  }
  expect('after dispose()', [error instanceof DisposedError, wg.disposed], [true, true]);
}

/**
 * Tests what only `wgemm/worker` has. Leaves an idle instance, which must not keep the process from
 * ending.
 */
export async function smokeOfWorker({ createGemm, GemmError }) {
  const wg = await createGemm();
  const data = Float32Array.of(1, 2, 3, 4);
  const y = await wg.gemm({ data, shape: [2, 2] }, { data, shape: [2, 2] }, null, {
    transfer: true,
  });
  expect('transfer', [y.data, data.length], [[7, 10, 15, 22], 0]);

  const large = { data: new Float32Array(512 * 512).fill(1), shape: [512, 512] };
  const controller = new AbortController();
  const settled = Promise.allSettled([
    wg.gemm(large, large),
    wg.gemm(large, large, null, { signal: controller.signal }),
  ]);
  controller.abort(new RangeError('enough'));
  const [first, second] = await settled;
  expect('the call before', first.value?.data[0], 512);
  expect('abort', [second.status, second.reason?.message], ['rejected', 'enough']);

  const out = { data: new Float32Array(7).fill(9), shape: [2, 2], strides: [5, 1] };
  expect('out', (await wg.gemm(square, square, null, { out })) === out, true);
  expect('out in strides', out.data, [7, 10, 9, 9, 9, 15, 22]);

  const doomed = await createGemm();
  const pending = doomed.gemm(large, large).catch((error) => error);
  doomed.dispose();
  expect(
    'dispose() before the end',
    [(await pending) instanceof GemmError, (await pending).code],
    [true, 'DISPOSED'],
  );
}

/** Tests `wgemm/weights`: a file with a tensor, from bytes and from a Blob. */
export async function smokeOfWeights({ readGGUF, readSafetensors, GemmError }) {
  const header = '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}';
  const bytes = new Uint8Array(8 + header.length + 8);
  bytes[0] = header.length;
  bytes.set(new TextEncoder().encode(header), 8);
  bytes.set([0, 0, 128, 63, 0, 0, 0, 64], 8 + header.length); // 1 and 2
  for (const source of [bytes, new Blob([bytes])]) {
    const file = await readSafetensors(source);
    const { data } = (await file.tensor('w')).toFloat32();
    expect('a tensor of safetensors', data, [1, 2]);
  }
  const error = await readGGUF(bytes).catch((caught) => caught);
  expect('the other format', [error instanceof GemmError, error.code], [true, 'ARGUMENT']);
}

/**
 * Tests `wgemm/tfjs` on a registry of kernels like tfjs's, with a backend like its `cpu`:
 * tfjs itself is not installed here.
 */
export async function smokeOfTfjs({ install }) {
  const kernels = new Map();
  const key = (kernelName, backendName) => `${backendName} ${kernelName}`;
  const tf = {
    getKernel: (kernelName, backendName) => kernels.get(key(kernelName, backendName)),
    registerKernel: (config) => kernels.set(key(config.kernelName, config.backendName), config),
    unregisterKernel: (kernelName, backendName) => kernels.delete(key(kernelName, backendName)),
  };
  const old = { kernelName: 'BatchMatMul', backendName: 'cpu', kernelFunc: () => 'old' };
  tf.registerKernel(old);
  const backend = {
    disposeData: () => true,
    readSync: ({ data }) => data,
    makeTensorInfo: (shape, dtype, data) => ({ dataId: { data }, shape, dtype }),
  };
  const tensor = ({ data, shape }) => backend.makeTensorInfo(shape, 'float32', data);
  const multiply = (attrs, ...[x, y]) =>
    tf
      .getKernel('BatchMatMul', 'cpu')
      .kernelFunc({ inputs: { a: tensor(x), b: tensor(y) }, backend, attrs });

  const remove = await install(tf, { always: true });
  const y = multiply({ transposeA: false, transposeB: true }, square, square);
  expect(
    'tfjs',
    [y.shape, y.dataId.data],
    [
      [2, 2],
      [5, 11, 11, 25],
    ],
  );
  remove();
  expect(
    'after remove()',
    [multiply({}, a, b), tf.getKernel('BatchMatMul', 'cpu') === old],
    ['old', true],
  );
}
