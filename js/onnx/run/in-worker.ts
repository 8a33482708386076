/**
 * The script of the worker of `wgemm/worker` with models, `wgemm-models-worker.js`. The page has
 * read the file and checks feeds; the worker does the rest.
 */
import { Gemm } from '../../api/create-gemm.js';
import type { Core } from '../../instance/core.js';
import type { Info } from '../../instance/start-core.js';
import { viewOf } from '../../base/arrays.js';
import type { DataArray } from '../../base/tensor.js';
import { HeapTensor } from '../../instance/heap.js';
import { attentionOf, makeAttention, runAttention } from '../../ops/attention.js';
import type { Operand } from '../../call/operand.js';
import {
  models,
  type Pause,
  Sent,
  type WorkerModel,
  type WorkerState,
} from '../../worker/in-worker.js';
import { checkGraph } from '../graph/graph.js';
import type { OnnxModel } from '../read/model.js';
import { type OnnxDType, storedAs, type Value } from '../read/value.js';
import type { StateRunner } from './model.js';
import { Session } from './session.js';

models.load = async (core, info, { model, outputs }, progress, prepacked) => {
  wg ??= new Instance(core, info);
  const graph = checkGraph(model as OnnxModel, outputs);
  return modelOf(await Session.load(graph, wg, progress, prepacked));
};

models.attention = (core, attributes, operands, isCheck) => {
  const read = attentionOf(attributes, operands);
  const result = isCheck ? makeAttention(core, read) : runAttention(core, read);
  return HeapTensor.is(result) ? undefined : result;
};

/** The instance of the worker, once it has a model. */
let wg: Gemm | undefined;

/** The constructor of an instance, which users do not see. */
const Instance = Gemm as unknown as new (core: Core, info: Info) => Gemm;

function modelOf(session: Session): WorkerModel {
  const { inputs, outputs } = session;
  const valuesOf = (operands: readonly (Operand | null)[]) =>
    operands.map((operand, i): Value | undefined => {
      if (!operand) return undefined;
      const dtype = inputs[i]?.info.dtype as OnnxDType;
      const { buffer, byteOffset, length } = operand.source as DataArray;
      const data = viewOf(storedAs(dtype), buffer, byteOffset, length);
      return { dtype, shape: operand.shape, data };
    });
  return {
    described: {
      inputs: inputs.map(({ info, isOptional }) => ({ info, isOptional })),
      outputs,
    },
    async run(operands, pause: Pause, state) {
      const values = await session.runWithPauses(valuesOf(operands), pause, state as StateRunner);
      return new Sent(
        values.map((value) => value && { ...value }),
        values.flatMap((value) => (value ? [value.data.buffer as ArrayBuffer] : [])),
      );
    },
    explain: (operands, hasSteps, state) =>
      hasSteps
        ? session.profile(valuesOf(operands), state as StateRunner)
        : session.explain(valuesOf(operands)),
    state: (keep) => session.state(keep) as WorkerState,
    dispose: () => session.dispose(),
  };
}
