// npm run bench -- --cblas: cblas.h in a wasm module of one build, next to wg.gemm() of the same
// build and to plain loops; and syrk and trsm next to gemm, in that module.
import { createGemm } from 'wgemm';
import { fail } from '../../scripts/run.mjs';
import { buildPrograms, checkBuild } from './build-programs.mjs';
import { gemmOn } from './contestants.mjs';
import { randomArray, toleranceOf } from './data.mjs';
import { processorName } from './machine.mjs';
import { checkEqual, measure } from './measure.mjs';
import { duration } from './print.mjs';
import { startProgram } from './program.mjs';

const name = 'wgemm_bench_cblas';
const turns = { warmUpMs: 300 };

// The numbers of cblas.h.
const layouts = { 'row-major': 101, 'column-major': 102 };
const [noTrans, trans] = [111, 112];
const triangles = { upper: 121, lower: 122 };
const sides = { left: 141, right: 142 };

const square = (n) => ({ m: n, n, k: n });
const cases = ['float32', 'float64'].flatMap((dtype) =>
  [
    ...[64, 65, 127, 128, 256, 1000].map((n) => ({ operation: 'gemm', ...square(n) })),
    { operation: 'gemm', m: 1, n: 1000, k: 1000 },
    ...[256, 512, 1000].flatMap((n) =>
      Object.keys(layouts).map((layout) => ({ operation: 'syrk', ...square(n), layout })),
    ),
    { operation: 'trsm', ...square(512), layout: 'row-major' },
  ].map((each) => ({ dtype, ...each, name: nameOf({ dtype, ...each }) })),
);

function nameOf({ operation, dtype, m, n, k, layout = '' }) {
  return `${operation} ${dtype} ${m}x${n}x${k} ${layout}`.trimEnd();
}

const contestantsOf = { gemm: productsOf, syrk: trianglesOf, trsm: solutionsOf };

/** Prints how long each case takes whose name contains the filter. */
export async function raceCblas({ build = 'relaxed', filter }) {
  checkBuild(build);
  const chosen = cases.filter(({ name }) => name.includes(filter));
  if (chosen.length === 0) {
    const all = cases.map(({ name }) => `  ${name}\n`).join('');
    fail(`bench: no case of cblas contains "${filter}"; there are\n${all.trimEnd()}`);
  }
  await buildPrograms([build], name);
  using wg = await createGemm({ simd: build });
  const program = await startProgram(build, name);
  console.log(`${processorName()}, Node ${process.version}, one thread, build ${build}`);
  console.log('M x N x K; GOP/s counts 2*M*N*K, and half of that for syrk and trsm.');
  console.log('Ratios compare with the first row of the case.\n');
  const twice = ['best', 'median'];
  printRow('', '', 'GOP/s', '', 'time', '', 'time ratio', '', 'rate ratio', '');
  printRow('', '', ...twice, ...twice, ...twice, ...twice);
  for (const one of chosen)
    print(await measure(one, contestantsOf[one.operation](one, program, wg), turns));
}

const printRow = (title, by, ...columns) =>
  console.log(
    `${title.padEnd(42)}${by.padEnd(12)}${columns.map((text) => text.padStart(11)).join('')}`,
  );

function print({ name, contestants: [first, ...others] }) {
  const times = ({ best, median }) => [best, median];
  const rates = ({ operations, best, median }) => [best, median].map((ms) => operations / ms / 1e6);
  const cells = (each) => [
    ...rates(each).map((rate) => rate.toFixed(1)),
    ...times(each).map(duration),
  ];
  const ratios = (each) =>
    [times, rates].flatMap((of) => of(each).map((one, i) => (one / of(first)[i]).toFixed(2)));
  printRow(name, first.name, ...cells(first));
  for (const each of others) printRow('', each.name, ...cells(each), ...ratios(each));
}

/** Operands in the memory of the module, and its functions with the type that they take first. */
function memoryOf(program, dtype) {
  const isDouble = dtype === 'float64';
  const Elements = isDouble ? Float64Array : Float32Array;
  const addresses = [];
  const view = (address, length) => new Elements(program.HEAPU8.buffer, address, length);
  return {
    put(data) {
      const address = program._allocate(data.byteLength);
      if (address === 0) fail(`bench: no memory for ${data.byteLength} bytes`);
      addresses.push(address);
      view(address, data.length).set(data);
      return address;
    },
    view,
    call: (name, ...args) => program[`_${name}`](isDouble, ...args),
    dispose: () => addresses.forEach((address) => program._release(address)),
  };
}

/** Contestants by the way that each computes the product. */
function productsOf(problem, program, wg) {
  const { dtype, m, n, k } = problem;
  const memory = memoryOf(program, dtype);
  const a = { shape: [m, k], data: randomArray(dtype, m * k, 1) };
  const b = { shape: [k, n], data: randomArray(dtype, k * n, 2) };
  const addresses = [a, b].map(({ data }) => memory.put(data));
  const contestant = (name, call) => {
    const c = memory.put(new a.data.constructor(m * n));
    const run = (times) => call(c, times);
    return { name, run, result: () => memory.view(c, m * n) };
  };
  const layout = layouts['row-major'];
  return [
    contestant('cblas', (c, times) =>
      memory.call('gemm', layout, noTrans, m, n, k, ...addresses, c, times),
    ),
    { ...gemmOn(wg, problem, {}, { a, b }), name: 'wg.gemm' },
    {
      ...contestant('loops', (c, times) => memory.call('loops', m, n, k, ...addresses, c, times)),
      dispose: memory.dispose,
    },
  ];
}

/** The whole of A * A' by gemm, and its triangles by syrk. */
function trianglesOf({ dtype, n, layout }, program) {
  const memory = memoryOf(program, dtype);
  const data = randomArray(dtype, n * n, 1);
  const a = memory.put(data);
  const contestant = (name, call) => {
    const c = memory.put(data.map(() => untouched));
    return { name, run: (times) => call(c, times), result: () => memory.view(c, n * n).slice() };
  };
  const whole = contestant('gemm', (c, times) =>
    memory.call('gemm', layouts[layout], trans, n, n, n, a, a, c, times),
  );
  const parts = Object.keys(triangles).map((uplo) => {
    const part = contestant(`syrk ${uplo}`, (c, times) =>
      memory.call('syrk', layouts[layout], triangles[uplo], n, a, c, times),
    );
    // In memory, the upper triangle of columns is the lower triangle of rows.
    const isUpper = (uplo === 'upper') === (layout === 'row-major');
    const result = () => mirrored(part.result(), n, isUpper);
    return { ...part, operations: n ** 3, result };
  });
  return [{ ...whole, dispose: memory.dispose }, ...parts];
}

/** The value of elements of C that syrk must not write. */
const untouched = 7;

/** A row-major matrix with the computed triangle in place of the other triangle, too. */
function mirrored(matrix, n, isUpper) {
  for (let i = 0; i < n; ++i) {
    for (let j = i + 1; j < n; ++j) {
      const [from, to] = isUpper ? [i * n + j, j * n + i] : [j * n + i, i * n + j];
      if (matrix[to] !== untouched) fail('bench: syrk writes to the other triangle');
      matrix[to] = matrix[from];
    }
  }
  return matrix;
}

/** A product by gemm, and the solutions of as large a system by trsm. */
function solutionsOf(problem, program) {
  const { dtype, n } = problem;
  const memory = memoryOf(program, dtype);
  const x = randomArray(dtype, n * n, 1);
  const addressOfX = memory.put(x);
  const random = randomArray(dtype, n * n, 2);
  const c = memory.put(x);
  const multiply = (a, b, times) =>
    memory.call('gemm', layouts['row-major'], noTrans, n, n, n, a, b, c, times);
  const contestants = Object.keys(sides).flatMap((side) =>
    Object.keys(triangles).map((uplo) => {
      // Elements that trsm must not read are 0 for the product and NaN for trsm. The others are
      // small, so that solving again and again does not overflow.
      const triangle = (other) =>
        random.map((value, i) => {
          const [row, column] = [Math.floor(i / n), i % n];
          if (row === column) return 1;
          return row < column === (uplo === 'upper') ? value / n : other;
        });
      const factor = memory.put(triangle(0));
      multiply(...(side === 'left' ? [factor, addressOfX] : [addressOfX, factor]), 1);
      const right = memory.view(c, n * n).slice();
      const a = memory.put(triangle(NaN));
      const b = memory.put(right);
      const run = (times) => {
        memory.view(b, n * n).set(right);
        memory.call('trsm', sides[side], triangles[uplo], n, a, b, times);
      };
      const name = `${side} ${uplo}`;
      run(1);
      checkEqual(x, memory.view(b, n * n), toleranceOf(problem), `${problem.name} ${name}`);
      return { name, run, operations: n ** 3 };
    }),
  );
  const run = (times) => multiply(addressOfX, addressOfX, times);
  return [{ name: 'gemm', run, dispose: memory.dispose }, ...contestants];
}
