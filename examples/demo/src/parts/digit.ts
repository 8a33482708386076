/** Digits: a pad, three answers, their times, and a network that learns in the page. */
import type {
  Answers,
  DigitFacts,
  FormFacts,
  FormName,
  FormTimes,
  TrainingPoint,
} from '../engine/digit.ts';
import type { Engine } from '../page/connect.ts';
import { find, make } from '../page/dom.ts';
import { keepFocus } from '../page/focus.ts';
import { bytes, duration, figure, whole } from '../page/format.ts';
import { runJob, showProblem } from '../page/job.ts';
import { latest } from '../page/latest.ts';
import { savesData } from '../page/wishes.ts';
import { side } from '../../../digits/images.mjs';
import type { Chart } from './digit-chart.ts';
import { drawImage, makePad, type Pad } from './digit-pad.ts';

const names: FormName[] = ['float32', 'bfloat16', 'int8'];

/** ms after the last change until the answer is also told in words. */
const silence = 500;

export async function start(section: HTMLElement, engine: Engine): Promise<void> {
  const show = (id: string, text: string) => {
    const element = find(section, `#digit-${id}`);
    element.hidden = text === '';
    if (element.textContent !== text) element.textContent = text;
  };
  const recognition = makeRecognition(section, engine, show);
  const pad = makePad(find<HTMLCanvasElement>(section, '#digit-pad'), {
    onChange: () => recognition.changed(pad.image()),
    onOwn: () => show('source', own),
    onPen: later((words: string) => show('pen', words)),
  });
  find(section, '#digit-clear').addEventListener('click', () => {
    pad.clear();
    show('source', own);
  });
  const training = new Training(section, engine, show, () => recognition.again());
  // Canvases do not take the colours of the style by themselves.
  document.addEventListener('theme', () => {
    pad.redraw();
    recognition.redraw();
    training.chart?.redraw();
  });
  const begin = async () => {
    try {
      await offerDigits(section, engine, pad, show);
      await training.begin(await engine.digitFacts());
    } catch (error) {
      showProblem(section, error);
    }
  };
  if (savesData()) onFirstTouch(section, begin);
  else await begin();
}

/** Calls `body` when the visitor first uses a section. */
function onFirstTouch(section: HTMLElement, body: () => Promise<void>): void {
  const touched = () => {
    for (const type of events) section.removeEventListener(type, touched);
    void body();
  };
  const events = ['pointerdown', 'focusin'];
  for (const type of events) section.addEventListener(type, touched);
}

const own = 'Draw a digit from 0 to 9.';

type Show = (id: string, text: string) => void;

/** A function that calls `body` once no more calls have come for a while, with the last one's. */
function later<T extends unknown[]>(body: (...values: T) => void): (...values: T) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => body(...values), silence);
  };
}

// --- digits of the data set ----------------------------------------------------------------------

async function offerDigits(
  section: HTMLElement,
  engine: Engine,
  pad: Pad,
  show: Show,
): Promise<void> {
  const labels = await engine.heldOutLabels();
  const which = find<HTMLSelectElement>(section, '#digit-which');
  const next = find<HTMLButtonElement>(section, '#digit-next');
  let row = -1;
  const put = async () => {
    const isWanted = (label: number) => which.value === '' || label === Number(which.value);
    do row = (row + 1) % labels.length;
    while (!isWanted(labels[row]!));
    const shown = row;
    const digit = await engine.heldOutDigit(shown);
    if (shown !== row) return; // the visitor was faster
    pad.show(digit);
    show(
      'source',
      `Digit ${shown + 1} of ${labels.length} that it has not seen: ${named(labels[shown]!)}. ` +
        'The next stroke clears it.',
    );
  };
  next.addEventListener('click', () => void put());
  which.addEventListener('change', () => void put());
  which.disabled = next.disabled = false;
  if (!pad.image()) await put();
}

// --- the answers ---------------------------------------------------------------------------------

/** Recognizes what is on the pad: one image at a time, and always the newest. */
function makeRecognition(section: HTMLElement, engine: Engine, show: Show) {
  const rows = makeBars(section);
  const canvas = find<HTMLCanvasElement>(section, '#digit-image');
  const tell = later((words: string) => {
    show('status', words);
    canvas.setAttribute('aria-label', `What the network sees. ${words}`);
  });
  let image: Float32Array | undefined;

  const redraw = () => {
    const context = canvas.getContext('2d')!;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.save();
    context.scale(canvas.width / side, canvas.height / side);
    if (image) drawImage(context, image, getComputedStyle(canvas).color);
    context.restore();
  };
  const again = latest(
    async (isStale) => {
      const answers = image && (await engine.recognize(image));
      if (isStale()) return;
      showAnswers(section, rows, answers);
      tell(!image ? 'The pad is empty.' : answers ? sentenceOf(answers) : 'There is no network.');
    },
    (error) => showProblem(section, error),
  );
  return {
    changed(next: Float32Array | undefined) {
      image = next;
      redraw();
      void again();
    },
    again: () => void again(),
    redraw,
  };
}

type Bars = Record<FormName, { bar: HTMLElement; text: HTMLElement }>[];

function makeBars(section: HTMLElement): Bars {
  const bars: Bars = [];
  const lines = Array.from({ length: 10 }, (_, digit) => {
    const line = make('tr');
    const head = make('th', String(digit));
    head.scope = 'row';
    line.append(head);
    const cells = names.map((name) => {
      const cell = make('td');
      const bar = make('span', '', 'digit-bar');
      const text = make('span', '-');
      text.id = `digit-${name}-${digit}`;
      const box = make('div');
      box.append(bar, text);
      cell.append(box);
      line.append(cell);
      return [name, { bar, text }] as const;
    });
    bars.push(Object.fromEntries(cells) as Bars[number]);
    return line;
  });
  find(section, '#digit-answers tbody').replaceChildren(...lines);
  return bars;
}

const mostProbable = (probabilities: Float32Array): number =>
  probabilities.indexOf(Math.max(...probabilities));

const named = (digit: number): string => `${digit === 8 ? 'an' : 'a'} ${digit}`;

const percent = (value: number): string => (value < 0.0005 ? '0%' : `${figure(100 * value)}%`);

function showAnswers(section: HTMLElement, bars: Bars, answers: Answers | undefined): void {
  for (const name of names) {
    const answer = answers && mostProbable(answers[name]);
    find(section, `#digit-answer-${name}`).textContent = answer === undefined ? '-' : `${answer}`;
    bars.forEach((row, digit) => {
      const { bar, text } = row[name];
      const value = answers?.[name][digit];
      const words = value === undefined ? '-' : percent(value);
      bar.classList.toggle('digit-best', digit === answer);
      if (text.textContent === words) return; // most bars stay as they are
      text.textContent = words;
      bar.style.setProperty('--part', `${value ?? 0}`);
    });
  }
}

function sentenceOf(answers: Answers): string {
  const all = names.map((name) => mostProbable(answers[name]));
  const sure = names.map((name, i) => answers[name][all[i]!]!);
  if (all.every((answer) => answer === all[0]))
    return (
      `All three take it for ${named(all[0]!)}` +
      `${Math.min(...sure) < 0.6 ? ', but are not sure' : ''}.`
    );
  const each = names.map((name, i) => `${name} takes it for ${named(all[i]!)}`);
  return `They differ: ${each.join(', ')}.`;
}

// --- the network and its times -------------------------------------------------------------------

class Training {
  chart: Chart | undefined;
  private readonly buttons: Record<'measure' | 'train' | 'builtin', HTMLButtonElement>;
  private facts!: DigitFacts;
  private forms: FormFacts[] = [];
  private isOwn = false;
  private trainings = 0;

  constructor(
    private readonly section: HTMLElement,
    private readonly engine: Engine,
    private readonly show: Show,
    private readonly onNetwork: () => void,
  ) {
    const button = (name: string) => find<HTMLButtonElement>(section, `#digit-${name}`);
    this.buttons = {
      measure: button('measure'),
      train: button('train'),
      builtin: button('builtin'),
    };
    const { measure, train, builtin } = this.buttons;
    measure.addEventListener('click', () => void this.alone(() => this.measure()));
    train.addEventListener('click', () => void this.alone(() => this.train()));
    builtin.addEventListener('click', () => void this.alone(() => this.goBack()));
  }

  /** Starts the network that came with the page. */
  async begin(facts: DigitFacts): Promise<void> {
    this.facts = facts;
    await this.alone(async () => this.use(await this.engine.useBuiltIn(), false));
    if (this.forms.length > 0) void this.alone(() => this.measure());
  }

  /** Runs a job while the buttons are off. */
  private async alone(job: () => Promise<void>): Promise<void> {
    const { measure, train, builtin } = this.buttons;
    const giveFocusBack = keepFocus(this.section);
    for (const button of [measure, train, builtin]) button.disabled = true;
    try {
      await job();
    } catch (error) {
      showProblem(this.section, error);
    }
    measure.disabled = this.forms.length === 0;
    train.disabled = false;
    builtin.disabled = this.forms.length > 0 && !this.isOwn;
    giveFocusBack();
  }

  private use(forms: FormFacts[], isOwn: boolean): void {
    this.forms = forms;
    this.isOwn = isOwn;
    this.show(
      'network',
      isOwn
        ? 'In use: the network that was trained here.'
        : 'In use: the built-in network, which learned from 8,000 digits.',
    );
    this.showTimes();
    this.onNetwork();
  }

  private async goBack(): Promise<void> {
    this.use(await this.engine.useBuiltIn(), false);
    await this.measure();
  }

  private async measure(): Promise<void> {
    const times = await runJob<FormTimes[] | undefined>(this.section, 'Measuring', (report) =>
      this.engine.measureDigits(report),
    );
    this.showTimes(times);
  }

  private async train(): Promise<void> {
    const { epochs, training, test } = this.facts;
    const place = find(this.section, '#digit-chart');
    place.setAttribute('aria-label', 'Curve of the training: it runs');
    try {
      const { makeChart } = await import('./digit-chart.ts');
      await new Promise((resolve) => setTimeout(resolve)); // two short tasks, not one long
      place.hidden = false;
      this.chart ??= makeChart(place, epochs);
      this.chart.clear();
    } catch (error) {
      showProblem(this.section, error); // the training does without its curve
    }
    this.show('trained', '');
    let last: TrainingPoint | undefined;
    const began = performance.now();
    const forms = await runJob<FormFacts[] | undefined, TrainingPoint>(
      this.section,
      'Training',
      (report) => this.engine.trainDigits(++this.trainings, report),
      (point) => {
        last = point;
        this.chart?.add(point);
        this.show(
          'progress',
          `Epoch ${Math.min(epochs, Math.floor(point.epochs) + 1)} of ${epochs}: ` +
            `${percent(point.accuracy)} of ${test} right, loss ${figure(point.loss)}`,
        );
      },
    );
    if (!forms) {
      const when = last ? ` after ${figure(last.epochs)} of ${epochs} epochs` : '';
      this.show('trained', `The training ended${when}. The network in use is the one before.`);
    } else {
      const right = forms.map(({ name, accuracy }) => `${percent(accuracy)} in ${name}`);
      this.show(
        'trained',
        `Trained on ${whole(training)} digits in ` +
          `${duration((performance.now() - began) / 1000)}. Of ${test} that it has not seen it ` +
          `recognizes ${right[0]}, ${right[1]} and ${right[2]}.`,
      );
    }
    place.setAttribute(
      'aria-label',
      `Curve of the training: ${last ? `${percent(last.accuracy)} right` : 'nothing'} at its end`,
    );
    if (!forms) return;
    this.use(forms, true);
    await this.measure();
  }

  private showTimes(times?: FormTimes[]): void {
    const column = (of: 'one' | 'many') => times?.map((time) => time[of]);
    this.forms.forEach(({ name, bytes: count, accuracy }, i) => {
      const texts = {
        one: times ? duration(times[i]!.one, column('one')) : '-',
        many: times ? duration(times[i]!.many, column('many')) : '-',
        bytes: bytes(count),
        right: percent(accuracy),
      };
      for (const [id, text] of Object.entries(texts))
        find(this.section, `#digit-${id}-${name}`).textContent = text;
    });
    this.show('words', times ? this.wordsOf(times) : '');
  }

  /** What the times mean, since int8 is not always faster. */
  private wordsOf(times: FormTimes[]): string {
    const [float32, , int8] = times as [FormTimes, FormTimes, FormTimes];
    const one = float32.one / int8.one;
    const many = float32.many / int8.many;
    const pays = 1.15; // a smaller ratio is noise
    const compared = (ratio: number) =>
      ratio > pays
        ? `${figure(ratio)} times as fast as float32`
        : ratio > 1 / pays
          ? 'about as fast as float32'
          : `${figure(1 / ratio)} times as slow as float32`;
    const verdict =
      many <= pays
        ? 'In time, int8 does not pay here'
        : one <= pays
          ? 'int8 pays only for many digits at once here'
          : 'int8 pays here, for one digit and for many';
    return (
      `${verdict}: it is ${compared(one)} for one, and ${compared(many)} for 1,000. ` +
      `Right: of ${this.facts.test} unseen digits.`
    );
  }
}
