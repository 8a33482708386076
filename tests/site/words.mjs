// Words that users search for, and the page that must come first: an address of the index.
const pages = {
  '/guide/': [
    'inverse',
    'matrix inverse',
    'FFT',
    'determinant',
    'eigenvalues',
    'SVD',
    'WebGPU',
    'convolution',
  ],
  '/guide/getting-started.html': ['install'],
  '/guide/worker.html': ['web worker'],
  '/guide/threads.html': ['SharedArrayBuffer', 'COOP', 'multithreading'],
  '/guide/memory.html': ['requestAnimationFrame', 'out of memory'],
  '/guide/quantization.html': ['quantize', 'int8'],
  '/guide/4-bit-weights.html': ['int4'],
  '/guide/weights.html': ['GGUF', 'safetensors'],
  '/guide/layers.html': ['dense layer', 'nn.Linear'],
  '/guide/embeddings.html': ['embedding'],
  '/guide/text-generation.html': ['LLM', 'chat'],
  '/guide/search.html': ['cosine', 'nearest', 'dot product', 'kNN', 'vector database'],
  '/guide/batched-matmul.html': ['bmm'],
  '/guide/converting.html': ['numpy', 'nested arrays'],
  '/guide/tfjs.html': ['tensorflow'],
  '/guide/determinism.html': ['reproducible'],
  '/guide/builds.html': ['safari', 'ios', 'android'],
  '/guide/cpp.html': ['BLAS', 'C++'],
  '/guide/bundlers/vite.html': ['vite'],
  '/guide/bundlers/cdn.html': ['cdn', 'unpkg'],
  '/guide/bundlers/frameworks.html': [
    ...['react', 'useEffect', 'StrictMode', 'next.js', 'nuxt', 'vue', 'angular', 'sveltekit'],
    ...['astro', 'electron', 'jest', 'vitest', 'deno permissions', 'service worker'],
  ],
  '/guide/bundlers/edge.html': ['cloudflare'],
  '/benchmarks/': ['benchmark', 'performance'],
  '/recipes/pca.html': ['PCA'],
  '/recipes/pytorch-mlp.html': ['PyTorch'],
  '/recipes/scikit-learn-classifier.html': ['sklearn'],
  '/operators/gemm.html': ['sgemm', 'dgemm'],
  '/operators/attention.html': ['causal mask', 'self-attention'],
};

/** Each as [word, page]. */
export const words = Object.entries(pages).flatMap(([page, list]) =>
  list.map((word) => [word, page]),
);
