/** Embeddings: a model that the visitor gives finds the texts that are nearest to a text. */
import type { Engine } from '../page/connect.ts';
import { find, make } from '../page/dom.ts';
import { duration } from '../page/format.ts';
import { runJob } from '../page/job.ts';

let isReady = false;

export function start(section: HTMLElement, engine: Engine): void {
  const input = find<HTMLInputElement>(section, '#embed-folder');
  input.addEventListener('change', () => {
    const files = [...(input.files ?? [])];
    if (files.length > 0) void take(section, engine, files);
  });
}

async function take(section: HTMLElement, engine: Engine, files: File[]): Promise<void> {
  const panel = find(section, '#embed-search');
  const texts = find<HTMLTextAreaElement>(panel, '#embed-texts');
  const query = find<HTMLInputElement>(panel, '#embed-query');
  panel.hidden = true;
  const named: [string, File][] = files.map((file) => [
    file.webkitRelativePath.replace(/^[^/]*\//, ''), // the folder itself
    file,
  ]);
  const [name = ''] = files[0]!.webkitRelativePath.split('/');
  const facts = await runJob(section, 'Loading', (report) =>
    engine.openEmbedder(name, named, report),
  );
  if (!facts) return;
  const { file, pooling, limit, examples } = facts;
  const most = Number.isFinite(limit) ? `, at most ${limit} tokens` : '';
  find(panel, '#embed-facts').textContent = `${file}: pooling ${pooling}${most}.`;
  texts.value ||= examples;
  panel.hidden = false;

  const search = async () => {
    const lines = texts.value.split('\n').filter((line) => line.trim());
    const result = await runJob(section, 'Embedding', (report) =>
      engine.nearestTexts(lines, query.value, report),
    );
    if (!result) return;
    find(panel, '#embed-facts').textContent =
      `${file}: ${duration(result.ms / 1000)} per text, pooling ${pooling}${most}.`;
    find(panel, '#embed-found').replaceChildren(
      ...result.found.map(({ text, score }) => make('li', `${score.toFixed(3)} ${text}`)),
    );
  };
  if (!isReady) {
    find(panel, '#embed-find').addEventListener('click', () => void search());
    query.addEventListener('keydown', ({ key, isComposing }) => {
      if (key === 'Enter' && !isComposing) void search();
    });
  }
  isReady = true;
  await search();
}
