/** The steps of a model, as it is planned before it runs. */
import type { OnnxModel } from 'wgemm/onnx';
import { Core } from '../../../js/instance/core.js';
import type { LoadedCore } from '../../../js/instance/load.js';
import { checkGraph } from '../../../js/onnx/graph/graph.js';
import { Calculator } from '../../../js/onnx/run/calculator.js';
import { type PlannedStep, planModel } from '../../../js/onnx/run/plan.js';
import { createWithGlue } from './glue.js';

/** Computes what is constant. */
let calculator: Promise<Calculator> | undefined;

async function makeCalculator(): Promise<Calculator> {
  const { glue } = await createWithGlue();
  return new Calculator(new Core({ module: glue, threads: 1 } as unknown as LoadedCore, 0));
}

/** Plans the steps of a model. */
export async function plannedSteps(model: OnnxModel): Promise<readonly PlannedStep[]> {
  calculator ??= makeCalculator();
  return planModel(checkGraph(model), await calculator).steps;
}
