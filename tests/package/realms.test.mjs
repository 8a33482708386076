// The smoke test under Vitest, whose environments are realms of their own: see runtimes.mjs.
import { smoke, smokeOfWeights, smokeOfWorker } from './smoke.mjs';

const { test } = globalThis;

for (const entry of [
  'wgemm',
  'wgemm/worker',
  'wgemm/inline',
  'wgemm/linear',
  'wgemm/search',
  'wgemm/onnx',
  'wgemm/weights',
])
  test(entry, async () => {
    const found = await import(entry);
    const wgemm = found.createGemm ? found : { ...(await import('wgemm')), ...found };
    await smoke(wgemm);
    if (entry === 'wgemm/worker') await smokeOfWorker(wgemm);
    if (entry === 'wgemm/weights') await smokeOfWeights(wgemm);
  });

test('threads', async () => {
  const { createGemm } = await import('wgemm');
  await smoke({ ...(await import('wgemm')), createGemm: () => createGemm({ threads: 2 }) });
});
