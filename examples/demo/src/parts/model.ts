/** Own models: an .onnx file that the visitor gives, and the time of each step. */
import sample from 'virtual:sample';
import type { ModelFacts, ModelTimes } from '../engine/visitor-model.ts';
import type { Engine } from '../page/connect.ts';
import { find, make } from '../page/dom.ts';
import { bytes, figure, threadsOf, whole } from '../page/format.ts';
import { runJob, showProblem } from '../page/job.ts';

/** Rows that the table shows until the visitor asks for more. */
const most = 20;

export function start(section: HTMLElement, engine: Engine): void {
  const input = find<HTMLInputElement>(section, '#onnx-file');
  const again = find<HTMLButtonElement>(section, '#onnx-again');
  const small = find<HTMLButtonElement>(section, '#onnx-sample');
  const isBusy = (busy: boolean) => {
    for (const control of [input, again, small]) control.disabled = busy;
  };

  const measure = async () => {
    isBusy(true);
    const times = await runJob(section, 'Measuring', (report) =>
      engine.timeModel(sizesIn(section), report),
    );
    if (times) showTimes(section, times);
    isBusy(false);
  };
  const take = async (files: File[], sizes: Record<string, number> = {}) => {
    if (files.length === 0 || again.disabled) return;
    isBusy(true);
    find(section, '#onnx-result').hidden = true;
    const facts = await runJob(section, 'Loading', (report) => engine.openModel(files, report));
    if (facts) showFacts(section, facts, sizes);
    isBusy(false);
    if (facts?.lacks.length === 0) await measure();
  };

  input.addEventListener('change', () => {
    void take([...(input.files ?? [])]);
    input.value = ''; // the same file may be chosen again
  });
  again.addEventListener('click', () => void measure());
  find(section, '#onnx-more').addEventListener('click', ({ currentTarget }) => {
    (currentTarget as HTMLElement).hidden = true;
    for (const row of section.querySelectorAll<HTMLElement>('#onnx-steps tr')) row.hidden = false;
    find(section, '.scroll').focus({ preventScroll: true }); // the button is gone
  });
  small.addEventListener('click', () => {
    void fetch(sample)
      .then(async (answer) =>
        take([new File([await answer.blob()], 'encoder-block.onnx')], { tokens: 64 }),
      )
      .catch((error: unknown) => showProblem(section, error, true));
  });

  const mark = (isOver: boolean) => section.classList.toggle('dropping', isOver);
  section.addEventListener('dragover', (event) => {
    event.preventDefault(); // the browser would leave the page
    mark(true);
  });
  section.addEventListener('dragleave', () => mark(false));
  section.addEventListener('drop', (event) => {
    event.preventDefault();
    mark(false);
    void take([...(event.dataTransfer?.files ?? [])]);
  });
}

function showFacts(section: HTMLElement, facts: ModelFacts, sizes: Record<string, number>): void {
  find(section, '#onnx-name').textContent = facts.name;
  find(section, '#onnx-facts').textContent =
    `${bytes(facts.bytes)}, ${whole(facts.nodes)} nodes. Inputs: ${facts.inputs.join('; ')}.`;
  find(section, '#onnx-lacks').replaceChildren(...facts.lacks.map((line) => make('li', line)));
  find(section, '#onnx-run').hidden = facts.lacks.length > 0;
  find(section, '#onnx-sizes').replaceChildren(
    ...facts.dynamic.map((name) => {
      const label = make('label', name);
      const input = make('input');
      Object.assign(input, { type: 'number', min: '1', value: sizes[name] ?? 1, name });
      label.append(input);
      return label;
    }),
  );
  find(section, '#onnx-total').textContent = '';
  for (const part of ['tbody', 'tfoot']) find(section, `#onnx-steps ${part}`).replaceChildren();
  find(section, '#onnx-more').hidden = true;
  find(section, '#onnx-result').hidden = false;
}

const sizesIn = (section: HTMLElement): Record<string, number> =>
  Object.fromEntries(
    [...section.querySelectorAll<HTMLInputElement>('#onnx-sizes input')].map(({ name, value }) => [
      name,
      Math.max(1, Math.floor(Number(value)) || 1),
    ]),
  );

function showTimes(section: HTMLElement, { total, threads, steps }: ModelTimes): void {
  const sum = steps.reduce((before, { time }) => before + time, 0);
  const share = (time: number) => (sum > 0 ? `${Math.round((100 * time) / sum)}%` : '-');
  // All times are in ms, with as many decimals as give the sum four digits.
  const decimals = Math.min(5, Math.max(1, 3 - Math.floor(Math.log10(sum || 1))));
  const ms = (time: number) => time.toFixed(decimals);
  const run = total < 1 ? total.toPrecision(3) : figure(total);
  find(section, '#onnx-total').textContent =
    `A run takes ${run} ms on ${threadsOf(threads)}, in ${whole(steps.length)} steps.`;
  const rowOf = (title: string, node: string, time: number, by: string) => {
    const first = make('th', title);
    first.scope = 'row';
    first.append(make('span', node), make('span', by, 'onnx-by'));
    const row = make('tr');
    row.append(first, make('td', ms(time)), make('td', share(time)), make('td', by));
    return row;
  };
  const rows = steps.map(({ node, op, fused, where, time, plan }) =>
    rowOf([op, ...fused].join(' + '), node, time, plan || where),
  );
  const isLong = steps.length > most;
  if (isLong) for (const row of rows.slice(most)) row.hidden = true;
  find(section, '#onnx-steps tbody').replaceChildren(...rows);
  const all = `All ${whole(steps.length)} steps`;
  find(section, '#onnx-steps tfoot').replaceChildren(rowOf(all, 'timed one by one', sum, ''));
  const more = find(section, '#onnx-more');
  more.textContent = `Show ${whole(steps.length - most)} more steps`;
  more.hidden = !isLong;
}
