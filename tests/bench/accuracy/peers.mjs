// Products of float32 by other libraries, on the problems of wgemm.
import * as np from 'numpy-ts';
import { encodeModel, loadOrt } from '../../peers/onnx.mjs';
import { startTfjs, tfjsMatMul, version as tfjsVersion } from '../../peers/tfjs.mjs';
import { lengths, peerProblems } from './products.mjs';

/** The row of a number of terms: wgemm's modes run on instances, and peers by themselves. */
function row(k) {
  return { table: 'peers', name: 'gemm float32', k, problems: () => peerProblems(k) };
}
export const peerRows = lengths.map(row);

/** Starts the peers. @returns { versions, run }: run has a function of a problem per library */
export async function startPeers() {
  const ort = await loadOrt();
  await startTfjs();
  return {
    versions: { 'onnxruntime-web': ort.version, tfjs: tfjsVersion, 'numpy-ts': np.__version__ },
    run: {
      async 'ONNX Runtime Web'({ operands: { a, b, m, n } }) {
        const [A, B] = [a, b].map(({ shape, dtype }, i) => ({ name: 'AB'[i], shape, dtype }));
        const output = { dtype: 'float32', shape: [m, n] };
        const session = await ort.createSession(
          encodeModel({ type: 'Gemm', inputs: [A, B], output }),
        );
        const { Y } = await session.run({ A: ort.tensor(a), B: ort.tensor(b) });
        await session.release();
        return Y.data;
      },
      tfjs({ operands: { a, b } }) {
        const product = tfjsMatMul(a, b);
        product.run(1);
        const y = product.result();
        product.dispose();
        return y;
      },
      'numpy-ts'({ operands: { a, b } }) {
        const [x, w] = [a, b].map(({ data, shape }) =>
          np.frombuffer(data.buffer, 'float32').reshape(...shape),
        );
        return np.matmul(x, w).data.slice();
      },
    },
  };
}
