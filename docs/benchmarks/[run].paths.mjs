// A page per run of the bench.
import { listRuns } from '../.vitepress/data/bench.mjs';

export default {
  watch: ['../bench/*.json'],
  paths: () =>
    listRuns().map(({ id, title }) => ({
      params: { run: id },
      content: `# Run of ${title}\n\n<BenchRun id="${id}" />\n`,
    })),
};
