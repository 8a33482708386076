/** Own models: an .onnx file that the visitor gives, and the time of each step. */
import sample from 'virtual:sample';
import type { ModelFacts, ModelTimes } from '../engine/visitor-model.ts';
import type { Engine } from '../page/connect.ts';
import { find, make } from '../page/dom.ts';
import { bytes, duration, threadsOf, whole } from '../page/format.ts';
import { runJob, showProblem } from '../page/job.ts';

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
  find(section, '#onnx-steps tbody').replaceChildren();
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
  find(section, '#onnx-total').textContent =
    `A run takes ${duration(total / 1000)} on ${threadsOf(threads)}, ` +
    `in ${whole(steps.length)} steps.`;
  const sum = steps.reduce((before, { time }) => before + time, 0);
  find(section, '#onnx-steps tbody').replaceChildren(
    ...steps.map(({ node, op, fused, where, time, plan }) => {
      const first = make('th', [op, ...fused].join(' + '));
      first.scope = 'row';
      first.append(make('span', node));
      const line = make('tr');
      line.append(
        first,
        make('td', time.toPrecision(3)),
        make('td', sum > 0 ? `${Math.round((100 * time) / sum)}%` : '-'),
        make('td', plan || where),
      );
      return line;
    }),
  );
}
