// Passes mutated models to wgemm/onnx, for ten minutes or `--seconds`, in processes with bounded
// memory. With `--graphs`, it passes random graphs, which must run, and compares their results with
// the same nodes when every value is an output. Each model has a seed: `--seed n --count 1` tries
// that one again. Models that fail are kept in build/fuzz/.
import { parseArgs } from 'node:util';
import { graphOf } from '../tests/fuzz/onnx-graphs.mjs';
import { modelOf } from '../tests/fuzz/onnx-mutate.mjs';
import { encodeGraph } from '../tests/peers/onnx-model.mjs';
import { fuzzInChildren, options } from './fuzz-children.mjs';
import { main } from './run.mjs';

await main(async () => {
  const { values } = parseArgs({
    options: { ...options, graphs: { type: 'boolean', default: false } },
  });
  const bytesOf = (seed) => (values.graphs ? encodeGraph(graphOf(seed).model) : modelOf(seed));
  await fuzzInChildren({
    program: 'onnx-child.mjs',
    what: values.graphs ? 'graphs' : 'models',
    values,
    keep: (seed) => [`${seed}.onnx`, bytesOf(seed)],
  });
});
