/** A visitor's .onnx file. What runs it is fetched when there is a file. */
import type { ModelFacts, ModelTimes } from './visitor-model.ts';
import type { Report } from './report.ts';

/** Loads a model, in place of the one before. Undefined if it was cancelled. */
export const openModel = async (files: File[], report: Report): Promise<ModelFacts | undefined> =>
  (await import('./visitor-model.ts')).open(files, report);

/** Times each step of the model, with these dynamic sizes. Undefined if it was cancelled. */
export const timeModel = async (
  sizes: Record<string, number>,
  report: Report,
): Promise<ModelTimes | undefined> => (await import('./visitor-model.ts')).time(sizes, report);
