// Compares the native library with the system's BLAS, on one thread, in turns: as it is built by
// default, and with AVX2 if the processor has it. An old OpenBLAS takes a new processor for an old
// one: it prints which core it chose, and OPENBLAS_CORETYPE=Haswell names another one.
import { join } from 'node:path';
import { hasAvx2 } from '../../scripts/build.mjs';
import { main, root, run } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';

await main(async () => {
  await setUp('native', 'blas');
  for (const avx2 of hasAvx2() ? ['OFF', 'ON'] : ['OFF']) {
    const build = join(root, 'build', `bench-native-${avx2.toLowerCase()}`);
    const options = ['-G', 'Ninja', '-DWGEMM_BENCH=ON', `-DWGEMM_AVX2=${avx2}`];
    const otherwise = 'The benchmark of the native library cannot be built: see above why.';
    await run('cmake', ['-S', root, '-B', build, ...options], { quiet: true, otherwise });
    await run('cmake', ['--build', build, '--target', 'wgemm_bench_native'], {
      quiet: true,
      otherwise,
    });
    console.log(`WGEMM_AVX2=${avx2}`);
    await run(join(build, 'wgemm_bench_native'), [], {
      env: { OPENBLAS_NUM_THREADS: '1', OPENBLAS_VERBOSE: '2' },
      otherwise: 'The benchmark of the native library fails: see above why.',
    });
  }
});
