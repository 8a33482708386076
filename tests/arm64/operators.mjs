// Computes every operator of models in every build: the results must have the stored bits.
import { createWithGlue } from '../js/support/glue.ts';
import { wrongRows } from '../js/support/nn-hashes.ts';

const builds = ['simd128', 'relaxed'];
for (const simd of builds) {
  // Attention multiplies, and products have the same bits in strict mode only.
  const { wg, glue } = await createWithGlue({ simd, determinism: 'strict' });
  const wrong = wrongRows(glue);
  if (wrong.length > 0)
    throw new Error(`${simd}: the bits differ from the stored bits in\n${wrong.join('\n')}`);
  wg.dispose();
}
console.log(builds.join(', '));
