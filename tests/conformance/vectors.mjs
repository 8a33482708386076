// Reads test vectors: turns the text of a file into cases, { name, op, opset, type, attrs, inputs,
// outputs, tolerance, expect, argument, skip }. Needs no file system, so that a page can use it
// too.
//   type      as the table prints it
//   argument  of a case that must be refused: the argument at fault, if it is known
//   skip      the reason; such a case, and one of an unknown operation, may lack the other members
// A tensor is { dtype, shape, data, initializer }, contiguous; `initializer` is true for a
// constant. An omitted input is null. A case that is made from a rule may also have:
//   exact     every bit counts
//   runs      the only places in which it runs
//   packedAs  makes the smaller case that runs with B packed
//   also      makes the case that runs after it
//   strides   in tensors
//   indices   in outputs: `data` has only the elements of these numbers, in row-major order
import { arrayOf } from './elements.mjs';
import { dynamicGrid, matmulIntegerGrid } from './integer.mjs';
import { onednnCases } from './matmul.mjs';
import { nbitsGrid } from './nbits.mjs';
import { qgemmGrid } from './qgemm.mjs';

const formats = {
  'ort_test_gemm_packed_spec.json': gemmGrid,
  'onednn_matmul_cases.json': onednnCases,
  'ort_test_qgemm_spec.json': qgemmGrid,
  'ort_test_matmulinteger_spec.json': matmulIntegerGrid,
  'ort_test_dynamic_spec.json': dynamicGrid,
  'ort_test_nbits_spec.json': nbitsGrid,
};

/** Whether a file of this name holds vectors. */
export const isVectors = (file) => file.endsWith('.jsonl') || file in formats;

/** Yields the cases of a file. */
export function* readVectors(file, text) {
  if (file in formats) {
    yield* formats[file](JSON.parse(text));
    return;
  }
  for (const line of text.split('\n')) if (line.trim() !== '') yield* readCase(JSON.parse(line));
}

function* readCase({
  name,
  op,
  opset,
  attrs = {},
  inputs,
  outputs = [],
  tolerance,
  expect,
  argument,
  status,
  opsets_dtypes_run_by_ORT: runs,
}) {
  const skip =
    status ??
    (op === 'graph' ? 'graph of several nodes' : undefined) ??
    (expect === 'reject' && hasRowZeroPoints(op, inputs)
      ? 'refused by ONNX Runtime, and allowed by ONNX: a zero point per row of A'
      : undefined);
  // A case for several types is repeated for each.
  for (const [type, opsets] of Object.entries(runs ?? { [typeOf(op, inputs, outputs)]: [opset] })) {
    const read = (tensor) =>
      tensor && readTensor(tensor, tensor.dtype === 'any' ? type : tensor.dtype);
    for (const opset of opsets) {
      if (skip) yield { name, op, opset, type, skip };
      else
        yield {
          name,
          op,
          opset,
          type,
          attrs,
          inputs: inputs.map(read),
          outputs: outputs.map(read),
          tolerance,
          expect: expect === 'error' ? 'reject' : expect,
          argument,
        };
    }
  }
}

function hasRowZeroPoints(op, [a, , zeroPoint]) {
  const rows = a.shape.at(-2);
  return op === 'MatMulInteger' && rows > 1 && zeroPoint?.data.length === rows;
}

/**
 * The type of a case's operands. For quantized ones "A x B -> Y", or "A x B" if it must be refused.
 */
function typeOf(op, inputs, [y]) {
  const indexOfB = {
    QGemm: 3,
    QLinearMatMul: 3,
    MatMulInteger: 1,
    DynamicQuantizeMatMul: 1,
    MatMulIntegerToFloat: 1,
  }[op];
  if (indexOfB === undefined) return inputs[0].dtype;
  return `${inputs[0].dtype} x ${inputs[indexOfB].dtype}${y ? ` -> ${y.dtype}` : ''}`;
}

function readTensor({ shape, data, initializer }, dtype) {
  // Number also reads 'NaN', '-Infinity' and '-0'.
  const parse = dtype.endsWith('int64') ? BigInt : Number;
  return { dtype, shape, data: arrayOf(dtype).from(data, parse), initializer };
}

/** Every size with every bias and transpose. Small whole numbers, so that float32 is exact. */
function* gemmGrid({ opset, dtype, attrs, MKN, bias, trans, total_cases: total }) {
  const filled = (...shape) => ({
    dtype,
    shape,
    data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => (i % 7) + 1),
  });
  const biases = {
    noBias: () => null,
    MBias: (m) => filled(m, 1),
    ScalarBias: () => filled(1, 1),
    MNBias: (m, n) => filled(m, n),
    NBias: (m, n) => filled(n),
  };
  let count = 0;
  for (const [m, k, n] of MKN) {
    for (const [transA, transB] of trans) {
      const a = transA ? filled(k, m) : filled(m, k);
      const b = transB ? filled(n, k) : filled(k, n);
      const [aRow, aStep] = transA ? [1, m] : [k, 1];
      const [bColumn, bStep] = transB ? [k, 1] : [1, n];
      const product = Array.from({ length: m * n }, (_, i) => {
        const atA = Math.floor(i / n) * aRow;
        const atB = (i % n) * bColumn;
        let sum = 0;
        for (let p = 0; p < k; ++p) sum += a.data[atA + p * aStep] * b.data[atB + p * bStep];
        return sum;
      });
      for (const kind of bias) {
        const c = biases[kind](m, n);
        const atC = {
          noBias: () => 0,
          MBias: (i) => c.data[Math.floor(i / n)],
          ScalarBias: () => 1,
          NBias: (i) => c.data[i % n],
        };
        const added = atC[kind] ?? ((i) => c.data[i]);
        const y = {
          dtype,
          shape: [m, n],
          data: Float32Array.from(product, (sum, i) => sum + added(i)),
        };
        const name = `packed ${m}x${k}x${n} ${kind} transA ${transA} transB ${transB}`;
        const kase = { name, op: 'Gemm', opset, type: dtype, attrs: { ...attrs, transA, transB } };
        yield { ...kase, inputs: [a, b, c], outputs: [y], products: m * n * k };
        ++count;
      }
    }
  }
  if (count !== total) throw new Error(`the grid has ${count} cases; it must have ${total}`);
}
