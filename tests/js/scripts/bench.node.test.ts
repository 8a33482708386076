/** The options of the bench, the file of a run, and the pages that are made of such files. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'wgemm-bench-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function run(...args: string[]): { status: number | null; stderr: string; stdout: string } {
  return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', timeout: 50_000 });
}

describe('the bench refuses', () => {
  const wrongThreads = (value: string) =>
    `--threads is ${value}; it must be a whole number from 1 to 64`;
  const engines = 'there are node, bun, chromium, firefox, webkit';

  it.each([
    [['--threads', '0'], wrongThreads('0')],
    [['--threads', '65'], wrongThreads('65')],
    [['--random', '--threads', 'two'], wrongThreads('two')],
    [['--engine', 'opera'], `there is no engine 'opera'; ${engines}`],
    [['--random', '--engine', 'node,bun'], `there is no engine 'node,bun'; ${engines}`],
    [['--build', 'relaxed'], '--build is for --kernels and --cblas: say one of them, too'],
    [['--count', '3'], '--count is for --random and --search: say one of them, too'],
    [['--sides', 'loop'], '--sides is for --search: say that too'],
    [
      ['--kernels', '--threads', '2'],
      '--kernels, --cblas, --arm and --wide take no --threads: they measure one thread',
    ],
    [
      ['--calls', '--engine', 'bun'],
      '--calls, --attention, --search, --cblas and --accuracy take no --engine: they run in Node',
    ],
    [['--cblas', '--build', 'simd'], "there is no build 'simd'; there are relaxed and simd128"],
  ])('%j', (args, message) => {
    const { status, stderr } = run('tests/bench/bench.mjs', ...args);
    expect(stderr).toBe(`wgemm: bench: ${message}\n`);
    expect(status).toBe(1);
  });

  it.each(['half', 'onnx', 'out-of-core', 'tfjs'])('wrong threads in %s.mjs', (name) => {
    const { status, stderr } = run(`tests/bench/${name}.mjs`, '--threads', '-1');
    expect(stderr).toMatch(/^wgemm: bench: .*--threads/);
    expect(status).toBe(1);
  });
});

describe('the file of a run', () => {
  interface Row {
    name: string;
    kind: string;
    arrays: boolean;
    ratio: number;
  }

  it.each([1, 2])('on %i threads', { timeout: 60_000 }, (threads) => {
    const json = join(folder, `${threads}.json`);
    const args = ['--random', '--count', '1', '--json', json];
    const { status, stdout, stderr } = run(
      ...['tests/bench/bench.mjs', ...args, '--threads', String(threads)],
    );
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const { rows, ...about } = JSON.parse(readFileSync(json, 'utf8')) as { rows: Row[] };
    expect(about).toMatchObject({
      engine: { name: 'Node', version: process.versions.node },
      threads,
      seed: 1,
      versions: { wgemm: expect.any(String) as string, tfjs: expect.any(String) as string },
    });
    expect('withoutThreads' in about).toBe(threads > 1);
    expect(stdout.includes('on one thread here: tfjs, numpy-ts\n')).toBe(threads > 1);
    expect(rows.map(({ arrays }) => arrays)).toEqual([false, true]);
    for (const { name, kind, ratio } of rows) {
      expect(name.startsWith(`${kind} `)).toBe(true);
      expect(ratio).toBeGreaterThan(0);
    }
  });
});

describe('the errors of results', () => {
  interface Run {
    kind: string;
    rows: { name: string; bound?: number; errors: Record<string, [most: number, mean: number]> }[];
  }
  function measure(filter: string) {
    const json = join(folder, 'accuracy.json');
    const result = run('tests/bench/bench.mjs', '--accuracy', '--filter', filter, '--json', json);
    const { stderr, status } = result;
    return { stderr, status, json };
  }

  it('have units, and bounds', () => {
    const { stderr, status, json } = measure('gemm float32, K 16');
    expect([stderr, status]).toEqual(['', 0]);
    const { kind, rows } = JSON.parse(readFileSync(json, 'utf8')) as Run;
    expect(kind).toBe('accuracy');
    const [own, peers] = rows;
    expect(own).toMatchObject({ name: 'gemm float32', bound: 24 });
    expect(Object.keys(own!.errors)).toEqual(['relaxed', 'simd128', 'strict']);
    // A result is rounded, so an error of 0 would be wrong.
    for (const [most, mean] of Object.values(own!.errors)) {
      expect(most).toBeGreaterThan(1);
      expect(mean).toBeGreaterThan(0.1);
      expect(mean).toBeLessThan(most);
    }
    expect(Object.keys(peers!.errors)).toContain('ONNX Runtime Web');
  });

  it('are named by the filter', () => {
    expect(measure('no such row')).toMatchObject({
      stderr: expect.stringMatching(/no row contains "no such row"; there are products,/) as string,
      status: 1,
    });
  });
});

describe('the pages of the bench', () => {
  interface Ratios {
    cases: number;
    lowest: string;
    median: string;
    highest: string;
    run: string;
  }
  interface Page {
    page: string;
    title: string;
    ratios?: Ratios;
    runs: { id: string; facts: object; chart?: object; random?: object; sweep: boolean }[];
  }
  interface Chart {
    groups: { label: string; bars: { name: string; text: string; width: number }[] }[];
    ticks: { text: string; at: number }[];
  }
  interface Overview {
    lead: string;
    charts: Record<'peers' | 'engines' | 'models', Chart>;
    pages: { page: string; title: string; ratios?: Ratios }[];
    starts: { id: string }[];
  }
  /** The modules of the data, by their names. */
  interface Modules {
    runs: { nameOf: (machine: string, run: object) => string };
    pages: { loadPages: (runs: object) => Page[] };
    overview: { loadOverview: (runs: object) => Overview };
  }
  const load = async <Name extends keyof Modules>(name: Name) =>
    (await import(
      new URL(`../../../docs/.vitepress/data/${name}.mjs`, import.meta.url).href
    )) as Modules[Name];

  const about = (name: string, threads: number, date = '2026-11-28') => ({
    date: `${date}T00:00:00.000Z`,
    processor: 'AMD EPYC',
    engine: { name, version: '1.2' },
    threads,
    versions: { wgemm: '0.1.0' },
    ...(threads > 1 && { withoutThreads: ['tfjs'] }),
  });
  const contestant = (name: string, kind: string, best: number) => ({
    name,
    kind,
    operations: 2e7,
    best,
    median: best,
  });
  const cases = (ratio: number) => ({
    cases: [
      {
        ...{ name: 'float32 1x1x1', m: 1, n: 1, k: 1 },
        contestants: [contestant('wgemm', 'own', 1), contestant('ORT', 'peer', ratio)],
      },
    ],
  });
  const rows = { seed: 1, rows: [{ kind: 'float32', arrays: false, ratio: 0.5 }] };
  const machine = '2026-11-28-zen5';
  const runs = {
    '2026-11-25-zen4': { ...about('Node', 1, '2026-11-25'), ...cases(3) },
    [machine]: { ...about('Node', 1), ...cases(2) },
    [`${machine}-firefox-2`]: { ...about('Firefox', 2), ...cases(4) },
    [`${machine}-firefox-2-random`]: { ...about('Firefox', 2), ...rows },
    [`${machine}-bun-1-random`]: { ...about('Bun', 1), ...rows },
    [`${machine}-accuracy`]: { ...about('Node', 1, '2026-11-29'), kind: 'accuracy', rows: [] },
    [`${machine}-start`]: { ...about('', 1), engine: undefined, rows: [] },
  };

  it('names each run by its engine, its threads and its kind', async () => {
    const { nameOf } = await load('runs');
    expect(Object.values(runs).map((each) => nameOf(machine, each))).toEqual([
      machine,
      ...Object.keys(runs).slice(1),
    ]);
  });

  it('has a page for each engine and number of threads that has a run', async () => {
    const pages = (await load('pages')).loadPages(runs);
    expect(pages.map(({ page, title }) => [page, title])).toEqual([
      ['node-1', 'Node, one thread'],
      ['bun-1', 'Bun, one thread'],
      ['firefox-2', 'Firefox, 2 threads'],
    ]);
    const [node, bun, firefox] = pages;
    expect(node!.runs.map(({ id }) => id)).toEqual([machine, '2026-11-25-zen4']);
    expect(node!.ratios).toEqual({
      ...{ cases: 1, lowest: '2.00×', median: '2.00×', highest: '2.00×' },
      run: '2026-11-28, AMD EPYC (Zen 5)',
    });
    expect(bun!.ratios).toBeUndefined();
    expect(bun!.runs[0]).toMatchObject({ sweep: false, random: { seed: 1 } });
    expect(firefox!.runs).toHaveLength(1);
    expect(firefox!.runs[0]!.facts).toMatchObject({
      Engine: 'Firefox 1.2, 2 threads',
      'One thread': 'tfjs',
    });
    expect(firefox!.runs[0]!.random).toMatchObject({
      places: [
        { groups: [{ kind: 'float32', shapes: 1, slower: 1 }, { kind: 'all' }] },
        { groups: [] },
      ],
    });
  });

  /** The runs above, and those that the overview needs. */
  const front = {
    ...runs,
    [`${machine}-chromium-1`]: {
      ...about('Chromium', 1),
      cases: [
        [1024, 0.5],
        [64, 4],
        [9, 8],
      ].map(([size, ratio]) => ({
        ...{ name: `float32 ${size}x${size}x${size}`, m: size, n: size, k: size },
        contestants: [
          contestant('wgemm', 'own', 1),
          contestant('ORT', 'peer', 2 * ratio!),
          contestant('ORT, constant B', 'peer', ratio!),
          contestant('tfjs', 'peer', 16),
        ],
      })),
    },
    [`${machine}-chromium-1-models`]: {
      ...about('Chromium', 1),
      kind: 'models',
      cases: [
        {
          ...{ model: 'table', variant: 'float32' },
          contestants: [
            { name: 'wgemm', kind: 'own', median: 2 },
            { name: 'ONNX Runtime Web', kind: 'peer', median: 3 },
          ],
        },
      ],
    },
    [`${machine}-start`]: {
      ...{ date: '2026-11-29T00:00:00.000Z', processor: 'AMD EPYC', versions: {} },
      rows: ['wgemm', 'onnxruntime-web', 'tfjs'].map((library, i) => ({
        ...{ where: 'page', library, best: 10 * i + 5, median: 50, ratio: i },
        brotli: 50_000 * (i + 1),
      })),
    },
  };

  it('has the ratios of each page on the overview, and the times of the start', async () => {
    const { lead, pages, starts } = (await load('overview')).loadOverview(front);
    expect(lead).toBe(
      'In Chromium 1 on one thread, wgemm is 4.00 times as fast as the fastest peer, in the ' +
        'median of 3 cases. The lowest ratio is 0.50, and the highest is 8.00.',
    );
    expect(pages.map(({ page, ratios }) => [page, ratios?.median])).toEqual([
      ['node-1', '2.00×'],
      ['bun-1', undefined],
      ['chromium-1', '4.00×'],
      ['firefox-2', '4.00×'],
    ]);
    expect(starts.map(({ id }) => id)).toEqual([`${machine}-start`]);
  });

  it('draws the bars of a chart on one scale from 0, the fastest peer first', async () => {
    const { charts } = (await load('overview')).loadOverview(front);
    const [large, small] = charts.peers.groups;
    expect(charts.peers.groups).toHaveLength(2);
    expect(large!.bars.map(({ name }) => name)).toEqual(['wgemm', 'ONNX Runtime Web', 'tfjs']);
    // 20 million operations in 1, 0.5 and 16 ms: the faster form of a peer counts.
    expect(large!.bars.map(({ text }) => text)).toEqual(['20.0', '40.0', '1.3']);
    expect(large!.bars.map(({ width }) => width)).toEqual([50, 100, 3.1]);
    expect(small!.bars[0]!.width).toBe(large!.bars[0]!.width);
    expect(charts.engines.groups.map(({ label }) => label)).toEqual(['Chromium 1.2']);
    const [model] = charts.models.groups;
    expect(model!.label).toBe('table, float32');
    expect(model!.bars.map(({ text }) => text)).toEqual(['1.50×, 2.00 ms', '1.00×, 3.00 ms']);
    expect(charts.models.ticks[0]).toEqual({ text: '0×', at: 0 });
  });

  it('says which run of the front figures is missing', async () => {
    const { loadOverview } = await load('overview');
    const rest = Object.entries(front).filter(([name]) => name !== `${machine}-chromium-1`);
    expect(() => loadOverview(Object.fromEntries(rest))).toThrow('no run of chromium-1 on zen5');
  });
});
