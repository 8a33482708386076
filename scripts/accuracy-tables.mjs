// The tables of docs/guide/accuracy.md, of the newest run by `npm run bench -- --accuracy`.
import { lossText } from '../tests/bench/print.mjs';

/** The largest and the mean error, in one line. */
function errorText([most, mean] = []) {
  if (most === undefined) return '-';
  return most === 0 ? '0' : `${short(most)}\u00a0/\u00a0${short(mean)}`;
}

/** Two digits and at most two decimals, or three digits from 10 on. */
function short(value) {
  if (value < 5e-3) return value.toExponential(1);
  return value < 10 ? String(Number(Number(value.toPrecision(2)).toFixed(2))) : threeDigits(value);
}

const threeDigits = (value) => String(Number(value.toPrecision(3)));

const boundText = (bound) => Math.floor(bound).toLocaleString('en');

const lengthOf = ({ k }) => `K\u00a0${k.toLocaleString('en')}`;
const titleOf = (row) => (row.k === undefined ? row.name : `${row.name}, ${lengthOf(row)}`);

/**
 * The tables: { name, page, make }.
 *
 * @param given functions: `findRun` returns the run, `findStrict` returns runs of the usual bench,
 *   { machine, date, contestants }, and `table` writes a table
 */
export function accuracyTables({ findRun, findStrict, table }) {
  const of = (name) => findRun().rows.filter((each) => each.table === name);
  const withModes = (name) => [
    ['', 'fast', 'strict', 'bound'],
    ...of(name).map((row) => [titleOf(row), ...modeTexts(row), boundText(row.bound)]),
  ];
  const modeTexts = ({ errors: { relaxed, strict } }) => [relaxed, strict].map(errorText);
  const made = {
    'accuracy of products': () => withModes('products'),
    'accuracy of 16 bits': () => [
      ['ULP of the type', 'fast', 'strict'],
      ...of('halves').map((row) => [titleOf(row), ...modeTexts(row)]),
    ],
    'accuracy of peers': () => {
      const rows = of('peers');
      const titles = {
        relaxed: 'wgemm',
        simd128: 'wgemm, simd128',
        strict: 'wgemm, strict',
      };
      return [
        ['float32', ...rows.map(lengthOf)],
        ...Object.keys(rows[0].errors).map((who) => [
          titles[who] ?? `${who} ${findRun().versions[versionNames[who] ?? who]}`,
          ...rows.map(({ errors }) => errorText(errors[who])),
        ]),
      ];
    },
    'accuracy of weights': () => {
      const exact = of('weights4');
      return [
        ['weights', 'fast', 'strict', 'level 4'],
        ...of('weights').map((row) => [
          titleOf(row),
          ...modeTexts(row),
          errorText(exact.find((each) => titleOf(each) === titleOf(row))?.errors.all),
        ]),
      ];
    },
    'accuracy of integers': () => [
      ['', 'error'],
      ...of('quantized').map(({ name, unit, errors }) => [
        [name, unit !== 'exact' && unit.replaceAll('|', '\\|')].filter(Boolean).join(', '),
        errorText(errors.all),
      ]),
    ],
    'accuracy of attention': () => withModes('attention'),
    'accuracy of scores': () => [
      ['metric, type', 'error'],
      ...of('search').map(({ name, errors }) => [name, errorText(errors.all)]),
    ],
    'accuracy of functions': () => functionsTable(of('functions')),
    'accuracy along rows': () => rowsTable(of('functions')),
    'cost of strict mode by processor': () => [
      ['processor', 'best', 'median'],
      ...findStrict().map(({ machine, date, contestants }) => [
        `${machine}, ${date.slice(0, 10)}`,
        ...lossOf(contestants),
      ]),
    ],
    'cost of strict mode': () => [
      ['M x N x K', 'fast, ms', 'strict, ms', 'lost'],
      ...findRun().cost.map((row) => [
        row.name,
        ...[row.fast, row.strict].map(({ best }) => best.toPrecision(3)),
        lossText(row),
      ]),
    ],
  };
  return Object.entries(made).map(([name, make]) => ({
    name,
    page: 'docs/guide/accuracy.md',
    make() {
      const [head, ...rows] = make();
      return table(head, rows);
    },
  }));
}

const versionNames = { 'ONNX Runtime Web': 'onnxruntime-web' };

const limitText = ({ bound }) => (bound === undefined ? '-' : short(bound));

const findType = (rows, row, dtype) =>
  rows.find((each) => each.name === row.name && each.dtype === dtype);

/** Operators of both types: a column per type. */
function functionsTable(rows) {
  const doubles = rows.filter(({ dtype }) => dtype === 'float64');
  return [
    ['', 'float32', 'float64', 'limit'],
    ...doubles.map((double) => {
      const single = findType(rows, double, 'float32');
      return [
        single.unit === 'of the input' ? `${single.name} *` : single.name,
        ...[single, double].map(({ errors }) => errorText(errors.all)),
        limitText(single),
      ];
    }),
  ];
}

/** Operators of float32 alone. */
function rowsTable(rows) {
  const alone = rows.filter((row) => !findType(rows, row, 'float64'));
  return [
    ['', 'float32', 'limit'],
    ...alone.map((row) => [row.name, errorText(row.errors.all), limitText(row)]),
  ];
}

/** The part of the speed that strict mode loses, by the best times and by the medians. */
function lossOf(contestants) {
  const of = (which) => contestants.find(({ name }) => name === which);
  const [fast, strict] = [of('wgemm'), of('wgemm, strict')];
  return ['best', 'median'].map((time) =>
    lossText({ fast: { best: fast[time] }, strict: { best: strict[time] } }),
  );
}
