/** Text: a tiny language model continues a beginning, and a larger one is measured. */
import type { FormSpeed, LlmForm, Written } from '../engine/llm.ts';
import type { Engine } from '../page/connect.ts';
import { find, make } from '../page/dom.ts';
import { keepFocus } from '../page/focus.ts';
import { bytes, whole } from '../page/format.ts';
import { runJob } from '../page/job.ts';

/** Names of the forms in ids. */
const idOf: Record<LlmForm, string> = { float32: 'float32', int8: 'int8', '4 bits': '4bits' };

export async function start(section: HTMLElement, engine: Engine): Promise<void> {
  const input = find<HTMLInputElement>(section, '#llm-beginning');
  const button = find<HTMLButtonElement>(section, '#llm-write');
  const measure = find<HTMLButtonElement>(section, '#llm-measure');
  const said = find(section, '#llm-said');
  await engine.startLlm();
  let texts = 0;

  const write = async () => {
    if (button.disabled) return;
    const giveFocusBack = keepFocus(section);
    measure.disabled = button.disabled = true;
    said.textContent = '';
    const beginning = input.value;
    let last: Written[] = [];
    const showNext = (next: Written[]) => {
      last = next;
      show(section, beginning, next);
    };
    const written = await runJob<Written[] | undefined, Written[]>(
      section,
      'Writing',
      (report) => engine.write(beginning, ++texts, report),
      showNext,
    );
    if (written) showNext(written);
    if (last.length > 0) said.textContent = written ? 'All three have written.' : 'It ended early.';
    measure.disabled = button.disabled = false;
    giveFocusBack();
  };
  const compare = async () => {
    measure.disabled = button.disabled = true;
    const gain = find(section, '#llm-gain');
    gain.textContent = '';
    const measured = await runJob<FormSpeed[] | undefined, FormSpeed[]>(
      section,
      'Measuring',
      (report) => engine.measureForms(report),
      (speeds) => showSpeeds(section, speeds),
    );
    if (measured) gain.textContent = gainOf(measured);
    measure.disabled = button.disabled = false;
  };
  measure.addEventListener('click', () => void compare());
  button.addEventListener('click', () => void write());
  input.addEventListener('keydown', ({ key, isComposing }) => {
    if (key === 'Enter' && !isComposing) void write();
  });
  measure.disabled = button.disabled = false;
}

function show(section: HTMLElement, beginning: string, forms: Written[]): void {
  const [{ text: first }] = forms as [Written];
  for (const { name, text } of forms) {
    const same = alike(text, first);
    find(section, `#llm-text-${idOf[name]}`).replaceChildren(
      make('b', beginning),
      text.slice(0, same),
      make('span', text.slice(same), 'llm-own'),
    );
    if (name === 'float32') continue;
    find(section, `#llm-same-${idOf[name]}`).textContent =
      `: ${same} of ${Math.min(text.length, first.length)} as float32`;
  }
}

function showSpeeds(section: HTMLElement, speeds: FormSpeed[]): void {
  for (const { name, tokensPerSecond, bytes: count } of speeds) {
    const cells = [bytes(count), whole(tokensPerSecond)];
    find(section, `#llm-row-${idOf[name]}`)
      .querySelectorAll('td')
      .forEach((cell, i) => (cell.textContent = cells[i]!));
  }
}

/** The bytes and the speed of 4 bits in words, compared with float32 and with int8. */
function gainOf(speeds: FormSpeed[]): string {
  const of = (form: LlmForm) => speeds.find(({ name }) => name === form)!;
  const own = of('4 bits');
  const gains = (['float32', 'int8'] as const).map((name) => {
    const other = of(name);
    const part = Math.round((100 * own.bytes) / other.bytes);
    const times = (own.tokensPerSecond / other.tokensPerSecond).toFixed(2);
    return `${part}% of the bytes of ${name} at ${times} times its speed`;
  });
  return `4 bits: ${gains.join(', and ')}.`;
}

/** Characters at the start that two texts share. One of them may have grown further. */
function alike(text: string, other: string): number {
  const most = Math.min(text.length, other.length);
  let at = 0;
  while (at < most && text[at] === other[at]) ++at;
  return at === most ? text.length : at;
}
