// Runs test vectors as models of one node, by `wgemm/onnx`: with all operands as inputs of the run,
// and with B and what belongs to it as constants, which the model packs.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { encodeGraph } from '../peers/onnx-model.mjs';
import { boundOf, indexOfB } from './check.mjs';
import { difference } from './compare.mjs';
import { arrayOf } from './elements.mjs';
import { readVectors } from './vectors.mjs';

/** Operator -> its domain, and the inputs that are constants in the second form. */
const operators = {
  Gemm: { domain: '', constants: [1, 2] },
  MatMul: { domain: '', constants: [1] },
  MatMulInteger: { domain: '', constants: [1, 3] },
  QLinearMatMul: { domain: '', constants: [1, 3, 4, 5, 6, 7] },
  QGemm: { domain: 'com.microsoft', constants: [1, 3, 4, 5, 6, 7, 8] },
  DynamicQuantizeMatMul: { domain: 'com.microsoft', constants: [1, 2, 3, 4] },
  MatMulIntegerToFloat: { domain: 'com.microsoft', constants: [1, 3, 5, 6] },
  MatMulNBits: { domain: 'com.microsoft', constants: [1, 2, 3, 4, 5] },
};

const floatAttributes = new Set(['alpha', 'beta']);

/** Why ONNX has no such node, as a reason to count; undefined if it has. */
function notInOnnx({ op, attrs, inputs, outputs, expect, skip }) {
  if (skip) return skip;
  if (!(op in operators)) return `of ${op}`;
  if (op === 'MatMul' && (inputs[2] || Object.keys(attrs).length > 0))
    return 'of MatMul with a bias or attributes, which only oneDNN has';
  if (/Integer|Linear|Dynamic/.test(op) && (attrs.transA || attrs.transB))
    return 'with transposes, which ONNX does not have in these operators';
  if (inputs.some((input) => input?.strides)) return 'with strides';
  if (expect === 'reject' && op === 'MatMul' && outputs.length > 0)
    return 'in which only the given output is wrong';
  return undefined;
}

function modelOf({ op, opset, attrs, inputs, outputs: [y] }, constants) {
  const { domain } = operators[op];
  const names = inputs.map((input, i) => (input ? `input ${i}` : ''));
  const described = inputs.map((input, i) => input && { ...input, name: names[i] });
  const isConstant = (input, i) => input && constants.includes(i);
  return encodeGraph({
    opsets: domain === '' ? { '': Number.isInteger(opset) ? opset : 13 } : { '': 13, [domain]: 1 },
    nodes: [
      {
        op,
        domain,
        name: 'the node',
        inputs: names,
        outputs: ['y'],
        attributes: Object.fromEntries(
          Object.entries(attrs).flatMap(([name, value]) =>
            value === undefined
              ? []
              : [[name, floatAttributes.has(name) ? { float: value } : Number(value)]],
          ),
        ),
      },
    ],
    inputs: described
      .filter((input, i) => input && !isConstant(input, i))
      .map(({ name, dtype, shape }) => ({ name, dtype, shape })),
    initializers: described.filter(isConstant),
    outputs: [{ name: 'y', dtype: y?.dtype ?? 'float32' }],
  });
}

/** Returns what is wrong, as a sentence; undefined if nothing is. */
async function checkModel(loadModel, wg, kase, isPacked) {
  const { op, inputs, outputs, tolerance, expect } = kase;
  const constants = isPacked ? operators[op].constants : [];
  const [wanted] = outputs;
  let model;
  let y;
  try {
    model = await loadModel(modelOf(kase, constants), { wg });
    const feeds = Object.fromEntries(
      inputs.flatMap((input, i) =>
        input && !constants.includes(i) ? [[`input ${i}`, input]] : [],
      ),
    );
    const plain = Object.fromEntries(
      Object.entries(feeds).map(([name, { data, shape, dtype }]) => [name, { data, shape, dtype }]),
    );
    ({ y } = await model.run(plain));
  } catch (error) {
    if (expect === 'reject' && error.message.includes('the node')) return undefined;
    const expected = expect === 'reject' ? 'refusal that names the node' : 'result';
    return `expected a ${expected}, found ${error}`;
  } finally {
    model?.dispose();
  }
  if (expect === 'reject') return 'expected a refusal, found a result';
  if (`${y.dtype} [${y.shape}]` !== `${wanted.dtype} [${wanted.shape}]`)
    return `expected ${wanted.dtype} [${wanted.shape}], found ${y.dtype} [${y.shape}]`;
  const elements = new (arrayOf(y.dtype))(y.data.buffer, y.data.byteOffset, y.data.length);
  const found = wanted.indices ? wanted.indices.map((index) => elements[index]) : elements;
  const relative = typeof tolerance === 'number' ? tolerance : 0;
  return difference(wanted, found, boundOf(kase), relative);
}

/**
 * Runs the cases of all files on instances, and prints how many passed by operator.
 *
 * @param most skips cases with more multiplications
 * @returns how many failed
 */
export async function runModels(loadModel, instances, paths, most) {
  const counts = {};
  const skipped = {};
  let failed = 0;
  for (const path of paths) {
    const file = basename(path);
    for (const kase of readVectors(file, readFileSync(path, 'utf8'))) {
      const { op, products = 0 } = kase;
      // Operands may be made when they are first read.
      const reason = products > most ? 'too large' : notInOnnx(kase);
      if (reason) {
        skipped[reason] = (skipped[reason] ?? 0) + 1;
        continue;
      }
      const count = (counts[op] ??= { plain: 0, packed: 0, failed: 0 });
      for (const wg of instances) {
        for (const form of ['plain', 'packed']) {
          if (form === 'packed' && kase.inputs[indexOfB(op)].shape.length < 2) continue;
          const before = wg.memory().inUse;
          const wrong =
            (await checkModel(loadModel, wg, kase, form === 'packed')) ??
            (wg.memory().inUse === before ? undefined : 'the model leaks');
          if (!wrong) ++count[form];
          else {
            ++count.failed;
            if (++failed <= 10)
              console.error(`models: ${file}: ${kase.name} (${op}, B ${form}): ${wrong}`);
          }
        }
      }
    }
  }
  for (const [op, { plain, packed, failed }] of Object.entries(counts))
    console.log(`models of ${op}: ${plain} passed plain, ${packed} packed, ${failed} failed`);
  for (const [reason, number] of Object.entries(skipped))
    console.log(`models: skipped ${number} ${reason}`);
  return failed;
}
