// Tests of the model that a visitor gives.
import { encodeGraph } from '../peers/onnx-model.mjs';
import { refuse } from '../package/results.mjs';

/** y = Relu(x * w + b), then the operators given, in a file as an exporter writes it. */
function modelOf(...operators) {
  const floats = (length) => Float32Array.from({ length }, (_, i) => (i % 7) - 3);
  const nodes = ['Relu', ...operators].map((op, i) => ({
    op,
    name: `${op} ${i}`,
    inputs: [i === 0 ? 'h' : `y${i - 1}`],
    outputs: [`y${i}`],
  }));
  return encodeGraph({
    nodes: [{ op: 'Gemm', name: 'dense', inputs: ['x', 'w', 'b'], outputs: ['h'] }, ...nodes],
    initializers: [
      { name: 'w', dtype: 'float32', shape: [64, 32], data: floats(64 * 32) },
      { name: 'b', dtype: 'float32', shape: [32], data: floats(32) },
    ],
    inputs: [{ name: 'x', dtype: 'float32', shape: ['rows', 64] }],
    outputs: [{ name: `y${operators.length}`, dtype: 'float32', shape: ['rows', 32] }],
  });
}

/** Drops a file on the part, and waits until it is done. */
async function drop(tab, name, bytes) {
  await tab.evaluate(
    (name, base64) => {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([bytes], name));
      document
        .querySelector('#onnx .onnx-drop')
        .dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
    },
    name,
    Buffer.from(bytes).toString('base64'),
  );
  await untilDone(tab);
}

const untilDone = (tab) =>
  tab.waitFor(
    'the model is done',
    () =>
      document.querySelector('#onnx .job').hidden &&
      !document.querySelector('#onnx-again').disabled,
  );

const shownIn = (tab) =>
  tab.evaluate(() => {
    const notice = document.querySelector('#onnx .notice');
    const result = document.querySelector('#onnx-result');
    const cellsOf = ({ cells }) => [...cells].map(({ innerText }) => innerText);
    return {
      notice: notice.hidden ? '' : notice.innerText,
      result: result.hidden ? '' : result.innerText,
      rows: [...document.querySelector('#onnx-steps').tBodies[0].rows].map(cellsOf),
      seen: [...document.querySelector('#onnx-steps').tBodies[0].rows].filter(
        ({ offsetHeight }) => offsetHeight > 0,
      ).length,
      all: cellsOf(document.querySelector('#onnx-steps tfoot tr') ?? { cells: [] }),
      lacks: [...document.querySelectorAll('#onnx-lacks li')].map(({ innerText }) => innerText),
      total: document.querySelector('#onnx-total').textContent,
    };
  });

/** Whether only a model that a visitor gives fetches a file. */
export const isOfModels = (path) =>
  /\/(onnx|visitor-\w+)-[^/]*\.js$/.test(path) || /-models-[^/]*\.wasm$|\.onnx$/.test(path);

/** Refuses other counts of rows and of shown rows, and a last row that is not the sum. */
async function expectSum(tab, count, seen) {
  const { rows, all, ...state } = await shownIn(tab);
  if (rows.length !== count || state.seen !== seen)
    refuse(`it shows ${state.seen} of ${rows.length} rows; expected ${seen} of ${count}`);
  const [title, sum] = all;
  if (!title?.startsWith(`All ${count} steps`)) refuse(`the last row is ${all}`);
  const added = rows.reduce((before, [, ms]) => before + Number(ms), 0);
  // Each time is rounded.
  const [, decimals = ''] = sum.split('.');
  if (!(Math.abs(added - Number(sum)) <= (count + 1) * 10 ** -decimals.length))
    refuse(`the steps take ${added} ms, and the sum is ${sum}`);
  if (rows.some(([, ms]) => ms.split('.')[1]?.length !== decimals.length))
    refuse(`the times are ${rows.map(([, ms]) => ms)}`);
}

export async function testOnnx(test, tab) {
  await test('fetches nothing to run models before there is one', async () => {
    await tab.waitFor('the part', () => 'started' in document.querySelector('#onnx').dataset);
    const fetched = tab.server.requested().find(({ path }) => isOfModels(path));
    if (fetched) refuse(`it fetched ${fetched.path}`);
  });
  await test('shows the operators and times of a file that is dropped', async () => {
    await drop(tab, 'small.onnx', modelOf('Softmax'));
    const { notice, result, rows, total } = await shownIn(tab);
    if (notice) refuse(`it says: ${notice}`);
    if (!/^small\.onnx\n/.test(result)) refuse(`it shows ${result}`);
    if (!/3 nodes\. Inputs: x: float32 \[rows, 64\]/.test(result)) refuse(`it shows ${result}`);
    const operators = rows.map(([operator]) => operator.split('\n')[0]);
    if (operators.join('; ') !== 'Gemm + Relu; Softmax') refuse(`the steps are ${operators}`);
    for (const [, ms, share] of rows)
      if (!(Number(ms) >= 0) || !/^(\d+%|-)$/.test(share)) refuse(`a step takes ${ms}, ${share}`);
    if (!/^A run takes [\d.,]+ ms on \d+ threads?, in 2 steps\.$/.test(total))
      refuse(`it says: ${total}`);
    await expectSum(tab, 2, 2);
    return total;
  });
  await test('takes a dynamic size', async () => {
    const workOf = async () => Number.parseFloat((await shownIn(tab)).rows[0][1]);
    const before = await workOf();
    await tab.retype('#onnx-sizes input', '20000');
    await tab.click('#onnx-again');
    await untilDone(tab);
    const after = await workOf();
    if (!(after > 10 * before)) refuse(`1 row takes ${before} ms, and 20000 take ${after}`);
  });
  await test('lists the operators that are missing', async () => {
    await drop(tab, 'other.onnx', modelOf('Hardmax', 'GridSample'));
    const { notice, lacks, rows } = await shownIn(tab);
    if (notice) refuse(`it says: ${notice}`);
    if (rows.length > 0) refuse('it shows steps');
    const text = lacks.join('; ');
    if (!/^2 operators are missing:; Hardmax .*; GridSample/.test(text)) refuse(`it lists ${text}`);
  });
  await test('names a file that is broken', async () => {
    await drop(tab, 'broken.onnx', modelOf().subarray(0, 100));
    const { notice, result } = await shownIn(tab);
    if (!/^broken\.onnx is not a model: ./.test(notice)) refuse(`it says: ${notice}`);
    if (result) refuse(`it shows ${result}`);
  });
  await test('has a small model', async () => {
    await tab.click('#onnx-sample');
    await tab.waitFor(
      'the steps',
      () => document.querySelector('#onnx-steps').tBodies[0].rows.length > 8,
    );
    await untilDone(tab);
    const { notice, total, rows } = await shownIn(tab);
    if (notice) refuse(`it says: ${notice}`);
    await expectSum(tab, rows.length, rows.length);
    // No box hides a row.
    const hidden = await tab.evaluate(() => {
      const { scrollHeight, clientHeight } = document.querySelector('#onnx .scroll');
      return scrollHeight - clientHeight;
    });
    if (hidden > 0) refuse(`${hidden} pixels of the table are hidden`);
    return total;
  });
  await test('shows the first steps of many, and all when asked', async () => {
    await drop(tab, 'many.onnx', modelOf(...Array(30).fill('Softmax')));
    await expectSum(tab, 31, 20);
    if ((await tab.textOf('#onnx-more')) !== 'Show 11 more steps')
      refuse(`the button says: ${await tab.textOf('#onnx-more')}`);
    await tab.click('#onnx-more');
    await expectSum(tab, 31, 31);
  });
}
