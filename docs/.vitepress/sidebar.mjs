// The order of the pages. scripts/site.mjs fails if no list has a page, or if a page of a list does
// not exist.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadPages } from './data/pages.mjs';

const docs = join(import.meta.dirname, '..');

const { version } = JSON.parse(readFileSync(join(docs, '..', 'package.json'), 'utf8'));

export const nav = [
  { text: 'Guide', link: '/guide/', activeMatch: '^/(guide|operators)/' },
  { text: 'Recipes', link: '/recipes/', activeMatch: '^/recipes/' },
  { text: 'API', link: '/reference/', activeMatch: '^/reference/' },
  // Another Vite project, so the router of the site must not open it.
  { text: 'Demo', link: '/demo/index.html', target: '_self' },
  { text: 'Benchmarks', link: '/benchmarks/', activeMatch: '^/benchmarks/' },
  { text: version, link: '/changelog', activeMatch: '^/changelog' },
];

/** A list of [title, page]. */
const pages = (folder, list) =>
  list.map(([text, page]) => ({ text, link: `/${folder}/${page === 'index' ? '' : page}` }));

const guide = [
  {
    text: 'Start',
    items: pages('guide', [
      ['What you can do', 'index'],
      ['Getting started', 'getting-started'],
      ['In a worker', 'worker'],
      ['Threads and headers', 'threads'],
    ]),
  },
  {
    text: 'Bundlers',
    collapsed: true,
    items: pages('guide/bundlers', [
      ['Overview', 'index'],
      ['Vite', 'vite'],
      ['webpack', 'webpack'],
      ['esbuild', 'esbuild'],
      ['Rollup', 'rollup'],
      ['Without a bundler', 'none'],
      ['From a CDN', 'cdn'],
      ['One file', 'one-file'],
      ['Frameworks', 'frameworks'],
      ['For a server', 'server'],
      ['Edge', 'edge'],
    ]),
  },
  {
    text: 'Search and text',
    items: pages('guide', [
      ['Nearest vectors', 'search'],
      ['Text embeddings', 'embeddings'],
      ['Text generation', 'text-generation'],
    ]),
  },
  {
    text: 'Networks and models',
    items: pages('guide', [
      ['Layers', 'layers'],
      ['Run an .onnx file', 'onnx'],
      ['Batched matmul', 'batched-matmul'],
      ['TensorFlow.js', 'tfjs'],
    ]),
  },
  {
    text: 'Small weights',
    items: pages('guide', [
      ['Weights of 4 bits', '4-bit-weights'],
      ['Quantization', 'quantization'],
      ['GGUF and safetensors', 'weights'],
    ]),
  },
  {
    text: 'Speed and memory',
    items: pages('guide', [
      ['Packed weights', 'packed-weights'],
      ['Memory and frame loops', 'memory'],
      ['Arrays of other libraries', 'converting'],
      ['Builds', 'builds'],
    ]),
  },
  {
    text: 'Results and errors',
    items: pages('guide', [
      ['Accuracy', 'accuracy'],
      ['Determinism', 'determinism'],
      ['Types and opsets', 'types-and-opsets'],
      ['Errors', 'errors'],
    ]),
  },
  {
    text: 'C++',
    items: pages('guide', [
      ['In C++', 'cpp'],
      ['In your own module', 'own-module'],
      ['C++ reference', 'cpp-reference'],
    ]),
  },
];

const operators = [
  {
    text: 'Operators',
    items: pages('operators', [
      ['Overview', 'index'],
      ['Gemm', 'gemm'],
      ['QGemm', 'qgemm'],
      ['MatMul', 'matmul'],
      ['Integer products', 'integer-products'],
      ['MatMulNBits', 'matmul-nbits'],
      ['Syrk', 'syrk'],
      ['Attention', 'attention'],
    ]),
  },
];

const recipes = [
  {
    text: 'Recipes',
    items: pages('recipes', [
      ['Overview', 'index'],
      ['Cosine top 10', 'cosine-top-10'],
      ['Text embeddings', 'text-embeddings'],
      ['Causal attention', 'causal-attention'],
      ['Token by token', 'token-by-token'],
      ['GGUF weights', 'gguf'],
      ['LoRA', 'lora'],
      ['k-means', 'k-means'],
      ['Principal components', 'pca'],
      ['Linear regression', 'linear-regression'],
      ['MLP from PyTorch', 'pytorch-mlp'],
      ['scikit-learn classifier', 'scikit-learn-classifier'],
      ['int8 layer from JSON', 'int8-layer'],
      ['Many small matrices', 'small-matrices'],
      ['60 frames per second', 'frame-loop'],
      ['mathjs, ml-matrix, numjs', 'replacing-a-matmul'],
    ]),
  },
];

/** The first heading of a page. */
function titleOf(file) {
  return /^# (.*)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? file;
}

function decisions() {
  const folder = join(docs, 'design', 'decisions');
  return readdirSync(folder)
    .filter((name) => /^\d.*\.md$/.test(name))
    .sort()
    .map((name) => ({
      text: titleOf(join(folder, name)).replaceAll('`', ''),
      link: `/design/decisions/${name.replace(/\.md$/, '')}`,
    }));
}

const design = [
  {
    text: 'Design',
    items: pages('design', [
      ['Overview', 'index'],
      ['Architecture', 'architecture'],
      ['JavaScript', 'javascript'],
      ['Glossary', 'glossary'],
      ['Adding a kernel', 'adding-a-kernel'],
      ['Adding an operator', 'adding-an-operator'],
      ['Blocking', 'blocking'],
      ['XNNPACK', 'xnnpack'],
      ['8-bit dot products', 'int8-dot-products'],
      ['ARM', 'arm'],
      ['Size', 'size'],
      ['Package', 'package'],
      ['Testing', 'testing'],
      ['Worker protocol', 'worker-protocol'],
      ['Releasing', 'releasing'],
    ]),
  },
  {
    text: 'Decisions',
    link: '/design/decisions/',
    collapsed: true,
    items: decisions(),
  },
];

const benchmarks = [
  {
    text: 'Benchmarks',
    items: [
      { text: 'Overview', link: '/benchmarks/' },
      ...loadPages().map(({ page, title }) => ({ text: title, link: `/benchmarks/${page}` })),
    ],
  },
];

const lab = [
  {
    text: 'Lab',
    items: [
      { text: 'About the lab', link: '/lab/' },
      { text: 'Rows', link: '/lab/rows' },
    ],
  },
];

const project = [
  {
    text: 'Project',
    items: [
      { text: 'Changelog', link: '/changelog' },
      { text: 'Contributing', link: '/contributing' },
      { text: 'Security', link: '/security' },
    ],
  },
];

/** TypeDoc writes a list with one entry, `wgemm`, which contains the other entries too. */
function reference() {
  const file = join(docs, 'reference', 'typedoc-sidebar.json');
  const [wgemm = { items: [] }] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
  const isEntry = ({ link }) => link !== undefined;
  const entries = wgemm.items.filter(isEntry);
  return [
    { text: 'API', items: [{ text: 'Entries', link: '/reference/' }] },
    { ...wgemm, items: wgemm.items.filter((each) => !isEntry(each)), collapsed: false },
    ...entries.map((entry) => ({ ...entry, text: `wgemm/${entry.text}`, collapsed: false })),
  ];
}

export const sidebar = {
  '/guide/': [...guide, ...operators],
  '/operators/': [...guide, ...operators],
  '/recipes/': recipes,
  '/reference/': reference(),
  '/benchmarks/': benchmarks,
  '/design/': design,
  '/lab/': lab,
  '/changelog': project,
  '/contributing': project,
  '/security': project,
};
