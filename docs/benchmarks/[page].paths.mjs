// A page for each engine and number of threads that has a run.
import { loadPages } from '../.vitepress/data/pages.mjs';

export default {
  watch: ['../bench/runs.json'],
  paths: () =>
    loadPages().map(({ page, title, runs }) => ({
      params: {
        page,
        runs,
        description:
          `${title}: every case, model and random shape that was measured, next to ONNX Runtime ` +
          'Web, tfjs and numpy-ts.',
      },
      content: `# ${title}\n\n[All engines](./index.md)\n\n<BenchRun />\n`,
    })),
};
