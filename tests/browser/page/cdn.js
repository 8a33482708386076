// Loads the package from a server of another origin, and says how far each entry comes.

/** The blob: addresses that this page made, and those that it has not revoked. */
const made = [];
const left = new Set();
const { createObjectURL, revokeObjectURL } = URL;
URL.createObjectURL = (blob) => {
  const address = createObjectURL.call(URL, blob);
  made.push(address);
  left.add(address);
  return address;
};
URL.revokeObjectURL = (address) => {
  left.delete(address);
  revokeObjectURL.call(URL, address);
};

/** The first result of an instance, or its error. */
async function tryEntry(script, options) {
  const { createGemm, GemmError } = await import(script);
  try {
    const wg = await createGemm(options);
    const square = { data: new Float32Array(256 * 256).fill(1), shape: [256, 256] };
    const { data } = await wg.gemm(square, square);
    const { threads } = wg.info;
    wg.dispose();
    return { threads, first: data[0] };
  } catch (error) {
    return { isGemmError: error instanceof GemmError, code: error.code, message: error.message };
  }
}

/**
 * @param cdn the origin of the server. It has the package in /wgemm@0.1/dist/, and in /moved/ its
 *   scripts without any .wasm, as a CDN that bundles has them
 * @returns what each trial came to, by its name; the text of the page; and how many blob: addresses
 *   were made and are left
 */
export async function fromCdn({ cdn, forbids }) {
  const dist = `${cdn}/wgemm@0.1/dist`;
  const assets = (file) => `${dist}/${file}`;
  const trials = {
    wgemm: ['index'],
    'wgemm/worker': ['worker'],
    'wgemm/inline': ['inline'],
    'wgemm, two threads': ['index', { threads: 2 }],
    'wgemm/worker, two threads': ['worker', { threads: 2 }],
  };
  const results = {};
  for (const [name, [entry, options]] of Object.entries(trials)) {
    await fetch('/progress', { method: 'POST', body: name });
    results[name] = await tryEntry(`${dist}/${entry}.js`, options);
  }
  results.moved = await tryEntry(`${cdn}/moved/index.js`);
  results['moved, with assets'] = await tryEntry(`${cdn}/moved/index.js`, { assets });
  results['moved, worker'] = await tryEntry(`${cdn}/moved/worker.js`);
  // Runs the program of the guide, if everything is allowed.
  if (forbids === undefined) await import('/from-cdn.js');
  const text = document.body.textContent.trim();
  return { results, text, blobs: { made: made.length, left: left.size } };
}
