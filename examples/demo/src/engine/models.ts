/** Models that a visitor gives. What runs them is fetched when there is one. */
import type { Report } from './report.ts';
import type { EmbedderFacts, NearestTexts } from './visitor-embedder.ts';
import type { ModelFacts, ModelTimes } from './visitor-model.ts';

/** Loads a model, in place of the one before. Undefined if it was cancelled. */
export const openModel = async (files: File[], report: Report): Promise<ModelFacts | undefined> =>
  (await import('./visitor-model.ts')).open(files, report);

/** Times each step of the model, with these dynamic sizes. Undefined if it was cancelled. */
export const timeModel = async (
  sizes: Record<string, number>,
  report: Report,
): Promise<ModelTimes | undefined> => (await import('./visitor-model.ts')).time(sizes, report);

/** Loads a model of embeddings, in place of the one before. `files` are by path in the folder. */
export const openEmbedder = async (
  folder: string,
  files: [string, File][],
  report: Report,
): Promise<EmbedderFacts | undefined> =>
  (await import('./visitor-embedder.ts')).open(folder, files, report);

/** Embeds texts and a query, and finds the nearest. Undefined if it was cancelled. */
export const nearestTexts = async (
  texts: string[],
  query: string,
  report: Report,
): Promise<NearestTexts | undefined> =>
  (await import('./visitor-embedder.ts')).nearest(texts, query, report);
