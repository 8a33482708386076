// Builds the demo. scripts/demo.mjs sets DEMO_OUT, the folder to write, and DEMO_SITE, where the
// pages of the guide are.
import { join } from 'node:path';
import { defineConfig } from 'vite';
import { digits } from './build/digits.mjs';
import { llm } from './build/llm.mjs';
import { models } from './build/models.mjs';
import { page } from './build/page.mjs';
import { sample } from './build/sample.mjs';

const site = process.env.DEMO_SITE ?? '..';

export default defineConfig({
  root: import.meta.dirname,
  base: './', // it works from any folder
  cacheDir: join(import.meta.dirname, '..', '..', 'build', 'demo-cache'),
  // The examples that the demo imports are outside its folder, where nothing is installed.
  resolve: { dedupe: ['wgemm'] },
  plugins: [page({ site }), digits(), llm(), models(), sample()],
  worker: {
    format: 'es',
    plugins: () => [digits(), llm(), models()],
    rolldownOptions: {
      output: {
        legalComments: 'none', // as in the page's own scripts
        // WebKit evaluates the worker's script again if a chunk imports it, so none does.
        codeSplitting: { groups: [{ name: 'engine', test: /\/src\/engine\/engine\.ts$/ }] },
      },
    },
  },
  build: {
    outDir: process.env.DEMO_OUT ?? join(import.meta.dirname, '..', '..', 'build', 'demo'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0, // the policy allows only files
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000, // kB; the peers are that large
  },
});
