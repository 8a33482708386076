// Runs seeded random problems of every operation and type, with B plain and packed, in both builds.
// The results must equal the reference's.
//   node fuzz.mjs COUNT [SEED]  COUNT problems of each operation
import { createGemm } from 'wgemm';
import { dtypes, isFloat, set } from '../js/support/dtypes.ts';
import * as quantized from '../js/support/quantized.ts';
import { referenceGemm } from '../js/support/reference.ts';
import {
  expectMatMul,
  place as placeStack,
  placeNames as stackNames,
} from '../js/support/stacks.ts';
import { drop, expectCall, expectGemm, place, placeNames, Random } from '../js/support/tensors.ts';
import { shapeOfMatMul } from '../js/support/matmul-reference.ts';

const { outputs, shapesOfC, typePairs } = quantized;
const count = Number(process.argv[2]);
const seed = Number(process.argv[3] ?? 1);

/** Small sizes more often than large ones. */
const size = (random, most) => Math.floor((most + 1) ** random.next());
function sizesOf(random, most, mostK) {
  const k = random.next() < 0.05 ? 0 : size(random, mostK);
  return [size(random, most), size(random, most), k];
}
const flag = (random) => random.next() < 0.5;

/** Sometimes makes one element infinite or NaN, so that most of a result stays finite. */
function spoil(random, dtype, { data }) {
  if (!isFloat(dtype) || data.length === 0 || random.next() < 0.8) return;
  set(data, dtype, random.between(0, data.length - 1), random.pick([NaN, Infinity, -Infinity]));
}

function gemm(wg, random, tell) {
  const dtype = random.pick(dtypes);
  const [m, n, k] = sizesOf(random, 60, 100);
  const [transA, transB] = [flag(random), flag(random)];
  const make = (shape) => place(wg, random.pick(placeNames), dtype, shape, random);
  const a = make(transA ? [k, m] : [m, k]);
  const b = make(transB ? [n, k] : [k, n]);
  const shapeOfC = random.pick([undefined, ...shapesOfC(m, n)]);
  const c = shapeOfC && make(shapeOfC);
  for (const input of [a, b]) spoil(random, dtype, input);
  const [alpha, beta] = [random.pick([1, 1, 0.5, -3, 0]), random.pick([1, 1, -2, 0.25, 0])];
  const options = { alpha, beta, transA, transB };
  tell(`${dtype} ${m}x${n}x${k}, C ${JSON.stringify(shapeOfC)}, ${JSON.stringify(options)}`);

  expectGemm(wg, a, b, c, options);
  const weights = wg.pack(b, { op: 'gemm', trans: transB });
  const inputs = c ? [a, c] : [a];
  const call = () => wg.gemm(a, weights, c, { alpha, beta, transA });
  expectCall(wg, inputs, undefined, referenceGemm(a, b, c, options), call, 'packed');
  drop(a, b, c, weights);
}

const edges = { int8: [-128, 127], uint8: [0, 255] };

function qgemm(wg, random, tell) {
  const types = random.pick(typePairs);
  const sizes = sizesOf(random, 60, 200);
  const [transA, transB] = [flag(random), flag(random)];
  const output = random.pick(outputs);
  const c = random.pick([undefined, ...shapesOfC(sizes[0], sizes[1])]);
  const alpha = random.pick([1, 1, 0.37, -2.5]);
  const values = random.pick(['any', 'any', 'ends', 'one end', 'of 7 bits']);
  const make = (dtype, shape) => {
    const tensor = place(wg, random.pick(placeNames), dtype, shape, random);
    const { data } = tensor;
    const end = edges[dtype] && random.pick(edges[dtype]);
    if (end === undefined) return tensor;
    for (let i = 0; i < data.length; ++i) {
      if (values === 'ends') data[i] = random.pick(edges[dtype]);
      else if (values === 'one end') data[i] = end;
      else if (values === 'of 7 bits') data[i] >>= 1;
    }
    return tensor;
  };
  const wanted = { types, sizes, output, c, alpha, transA, transB };
  tell(`${JSON.stringify(wanted)}, values ${values}`);

  const { inputs, options } = quantized.draw(wg, random, { ...wanted, make });
  quantized.expectQGemm(wg, inputs, options);
  const packed = { ...inputs, b: quantized.packed(wg, inputs.b, transB) };
  quantized.expectQGemm(wg, packed, { ...options, transB: false }, 'packed');
  quantized.dropAll(inputs, packed.b);
}

function matmul(wg, random, tell) {
  const dtype = random.pick(dtypes);
  const [m, n, k] = sizesOf(random, 40, 60);
  const [transposeA, transposeB] = [flag(random), flag(random)];
  const batch = Array.from({ length: random.pick([0, 1, 2]) }, () => random.pick([1, 2, 3]));
  const cut = (axes) => axes.slice(random.between(0, axes.length));
  const axes = () => cut(batch.map((size) => (random.next() < 0.3 ? 1 : size)));
  const srcShape = random.next() < 0.1 ? [k] : [...axes(), ...(transposeA ? [k, m] : [m, k])];
  const weightsShape = random.next() < 0.1 ? [k] : [...axes(), ...(transposeB ? [n, k] : [k, n])];
  const flags = { transposeA, transposeB };
  const make = (shape) => placeStack(wg, random.pick(stackNames), dtype, shape, random);
  const [src, weights] = [make(srcShape), make(weightsShape)];
  for (const input of [src, weights]) spoil(random, dtype, input);
  const shape = shapeOfMatMul(srcShape, weightsShape, flags);
  const bias = flag(random) ? make(cut(shape.map((size) => random.pick([1, size])))) : null;
  const biasShape = bias?.shape;
  tell(`${dtype} [${srcShape}] x [${weightsShape}], ${JSON.stringify({ ...flags, biasShape })}`);

  expectMatMul(wg, src, weights, bias, flags);
  if (weightsShape.length > 1) {
    const again = wg.pack(weights, { op: 'matmul', trans: transposeB });
    expectMatMul(wg, src, weights, bias, flags, 'packed', again);
    again.dispose();
  }
  drop(src, weights, bias);
}

const instances = [];
for (const simd of ['auto', 'simd128']) instances.push(await createGemm({ simd, threads: 1 }));
const builds = instances.map((wg) => wg.info.build).join(' and ');
for (const [i, op] of [gemm, qgemm, matmul].entries()) {
  const random = new Random(seed * 3 + i);
  for (let problem = 1; problem <= count; ++problem) {
    const wg = random.pick(instances);
    let told = '';
    try {
      op(wg, random, (what) => (told = what));
    } catch (error) {
      const which = `${op.name} ${problem} of ${count}, seed ${seed}, ${wg.info.build}`;
      error.message = `${which}: ${told}: ${error.message}`;
      throw error;
    }
  }
}
console.log(`${count} of each operation, ${builds}`);
