/** Starts the engine, and each part of the page when the visitor comes near it. */
import { keepPlace } from './page/anchor.ts';
import { copyText } from './page/clipboard.ts';
import { connect, type Engine } from './page/connect.ts';
import { find } from './page/dom.ts';
import { showProblem } from './page/job.ts';
import { measureFigure } from './parts/figure.ts';

interface Part {
  start: (section: HTMLElement, engine: Engine) => void | Promise<void>;
}

const parts: Record<string, () => Promise<Part>> = {
  find: () => import('./parts/find.ts'),
  meter: () => import('./parts/meter.ts'),
  onnx: () => import('./parts/model.ts'),
  size: () => import('./parts/size.ts'),
  digit: () => import('./parts/digit.ts'),
  attention: () => import('./parts/attention.ts'),
  llm: () => import('./parts/llm.ts'),
  bits: () => import('./parts/bits.ts'),
  embed: () => import('./parts/embed.ts'),
};

function tell(sentence: string): void {
  const notice = find(document, '#lack');
  notice.textContent = sentence;
  notice.hidden = false;
}

async function begin(): Promise<void> {
  const { engine, lack } = await connect((why) =>
    tell(`The worker that computes has ended (${why}). Load the page again.`),
  );
  if (lack) tell(`${lack}, so the page computes everything itself, and may not respond meanwhile.`);
  const sections = Object.keys(parts).map((id) => find(document, `#${id}`));
  for (const section of sections) find(section, '.stage').inert = true;
  // First the figure, alone: other work would slow down what it measures. If wgemm does not start,
  // each part says why.
  await measureFigure(engine).catch(() => undefined);
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        void startPart(target as HTMLElement, engine);
      }
    },
    { rootMargin: '100px' },
  );
  for (const section of sections) observer.observe(section);
}

async function startPart(section: HTMLElement, engine: Engine): Promise<void> {
  try {
    const { start } = await parts[section.id]!();
    await start(section, engine);
    section.dataset.started = '';
  } catch (error) {
    showProblem(section, error);
  }
  find(section, '.stage').inert = false;
}

document.addEventListener('click', ({ target }) => {
  const button = (target as Element).closest?.('.copy');
  const code = button?.parentElement?.querySelector('pre, code')?.textContent ?? '';
  if (!button) return;
  void copyText(code).then((isCopied) => {
    button.textContent = isCopied ? 'Copied' : 'Select it';
  });
});

keepPlace();

// The page is painted before anything else is fetched.
requestAnimationFrame(() =>
  setTimeout(() => {
    begin().catch((error: Error) => tell(`This page does not start: ${error.message}.`));
  }),
);
