/** Starts the engine, and each part of the page when the visitor comes near it. */
import { connect, type Engine } from './page/connect.ts';
import { find, make } from './page/dom.ts';
import { showProblem } from './page/job.ts';

interface Part {
  start: (section: HTMLElement, engine: Engine) => void | Promise<void>;
}

const parts: Record<string, () => Promise<Part>> = {
  meter: () => import('./parts/meter.ts'),
  size: () => import('./parts/size.ts'),
  digit: () => import('./parts/digit.ts'),
  find: () => import('./parts/find.ts'),
  attention: () => import('./parts/attention.ts'),
  llm: () => import('./parts/llm.ts'),
  bits: () => import('./parts/bits.ts'),
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
  const section = (id: string) => find(document, `#${id}`);
  const others = Object.keys(parts).filter((id) => id !== 'meter');
  for (const id of others) {
    const stage = find(section(id), '.stage');
    stage.inert = true;
    stage.before(make('p', 'This part starts when the meter has measured.', 'small waiting'));
  }
  // First the meter, alone: other work would slow down what it measures.
  await startPart(section('meter'), engine);
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        void startPart(target as HTMLElement, engine);
      }
    },
    { rootMargin: '300px' },
  );
  for (const id of others) observer.observe(section(id));
}

async function startPart(section: HTMLElement, engine: Engine): Promise<void> {
  try {
    const { start } = await parts[section.id]!();
    await start(section, engine);
    section.dataset.started = '';
  } catch (error) {
    showProblem(section, error);
  }
  section.querySelector('.waiting')?.remove();
  find(section, '.stage').inert = false;
}

// The page is painted before anything else is fetched.
requestAnimationFrame(() =>
  setTimeout(() => {
    begin().catch((error: Error) => tell(`This page does not start: ${error.message}.`));
  }),
);
