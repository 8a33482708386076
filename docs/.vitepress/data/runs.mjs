// Reads docs/bench/runs.json, and prepares its runs for the pages. A name is DATE-MACHINE, then
// -ENGINE-THREADS unless the run is of Node on one thread, and then its kind:
//   nothing   by `npm run bench -- --json`: cases, and the sweep
//   -random   by `npm run bench -- --random --json`: random shapes
//   -models   by `npm run bench -- --models --json`: whole models next to ONNX Runtime Web
//   -accuracy by `npm run bench -- --accuracy --json`: errors, and what strict mode costs
//   -start    by `npm run bench:start -- --json`: start-up times, of several engines
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { threadsText } from '../../../tests/bench/print.mjs';
import { versionsText } from './texts.mjs';

export const file = join(import.meta.dirname, '..', '..', 'bench', 'runs.json');
export const readRuns = () => JSON.parse(readFileSync(file, 'utf8'));

/** Engines have this order on the pages. */
export const engines = ['Node', 'Bun', 'Chromium', 'Firefox', 'WebKitGTK'];

const usualPage = 'node-1';

export const pageOf = ({ engine, threads }) => `${engine.name.toLowerCase()}-${threads}`;

/** The name of a run in the data. @param machine DATE-MACHINE */
export function nameOf(machine, run) {
  if (!run.engine) return `${machine}-start`;
  const page = pageOf(run);
  const kind = run.kind ? `-${run.kind}` : run.rows ? '-random' : '';
  return `${machine}${page === usualPage ? '' : `-${page}`}${kind}`;
}

/** '2026-11-28-zen5-chromium-1' -> ['zen', '5'] */
export const processorOf = (id) => /^\d{4}-\d\d-\d\d-([a-z]+)(\d+)/.exec(id).slice(1);

/** 'AMD EPYC (Zen 5)', from the name of a run and the processor that the run states. */
export function machineOf(id, processor) {
  const [family, generation] = processorOf(id);
  const maker = processor.split(',')[0].replace(/\(R\)| Processor/g, '');
  return `${maker} (${family[0].toUpperCase()}${family.slice(1)} ${generation})`;
}

/** '2026-11-24-zen4-firefox-2' -> '2026-11-24, AMD EPYC (Zen 4)' */
export const titleOf = (name, { processor }) =>
  `${name.slice(0, 10)}, ${machineOf(name, processor)}`;

/** The runs of a page or of all, the newest first: { id, title, results?, random?, models? }. */
export function runsOf(runs, page) {
  const named = Object.keys(runs).filter(
    (name) => runs[name].engine && !name.endsWith('-accuracy'),
  );
  return [...new Set(named.map((name) => name.replace(/-(random|models)$/, '')))]
    .map((id) => ({
      id,
      results: runs[id],
      random: runs[`${id}-random`],
      models: runs[`${id}-models`],
    }))
    .map((each) => ({ ...each, about: each.results ?? each.random ?? each.models }))
    .map((each) => ({ ...each, title: titleOf(each.id, each.about) }))
    .filter(({ about }) => !page || pageOf(about) === page)
    .sort((a, b) => b.about.date.localeCompare(a.about.date));
}

export const engineText = ({ engine }) => `${engine.name} ${engine.version}`;

/** Facts of every kind of run, by their names. */
export const factsOf = ({ processor, date, engine, threads, withoutThreads, versions }) => ({
  Machine: processor,
  Date: date.slice(0, 10),
  ...(engine && { Engine: `${engineText({ engine })}, ${threadsText(threads)}` }),
  ...(withoutThreads && { 'One thread': withoutThreads.join(', ') }),
  Versions: versionsText(versions),
});

export const hasSweep = (results) =>
  results?.cases.some(({ name }) => name.startsWith('sweep ')) ?? false;

/** The runs that have a sweep: { id, results }. */
export const listSweeps = () => runsOf(readRuns()).filter(({ results }) => hasSweep(results));
