/** Each operator of models has random problems, a case from its definition, and a row in the guide. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import type { OnnxDType } from 'wgemm/onnx';
import { forms } from '../../../js/onnx/graph/expand.js';
import { products } from '../../../js/onnx/graph/products.js';
import { tables } from '../../../js/onnx/graph/tables.js';
import { allOperators, rows } from '../../../js/onnx/operators/all.js';
import { kinds } from '../../../js/onnx/operators/define.js';
import { graphOf } from '../../fuzz/onnx-graphs.mjs';
import type { Float } from '../support/dtypes.js';
import { bits, cases } from './onnx-cases.js';
import { draws } from './onnx-draws.js';
import { type Input, runNode, tensor, valuesOf } from './onnx-nodes.js';
import { productDraws } from './product-draws.js';

const keyOf = ({ op, domain = '' }: { op: string; domain?: string }) =>
  domain ? `${domain}.${op}` : op;
const keys = [...allOperators.keys()];
/** Operators that run as several others, and If. */
const composed = [
  ...Array.from(forms.keys(), (op) => `com.microsoft.${op}`),
  ...tables.keys(),
  'If',
];
/** Runs as a product and its activation. */
const fusedGemm = 'com.microsoft.FusedGemm';
const missingIn = (known: ReadonlySet<string>, wanted = keys) =>
  wanted.filter((key) => !known.has(key));

/** The operators in the table of the guide, by kind. A cell may name the domain. */
function operatorsOfGuide(): Map<string, string[]> {
  const page = readFileSync(new URL('../../../docs/guide/onnx.md', import.meta.url), 'utf8');
  const [, table = ''] = /\| kind \| operators \|\n\|---\|---\|\n([^]*?)\n\n/.exec(page) ?? [];
  const rows = Array.from(table.matchAll(/^\| (.*) \| (.*) \|$/gm));
  return new Map(
    rows.map(([, kind = '', cell = '']) => [
      kind,
      cell.split(', ').flatMap((text) => {
        const [, name = '', mark] = /^(\w+)(?: \((ms|also ms|ml)\))?$/.exec(text) ?? [];
        if (mark === 'ml') return [`ai.onnx.ml.${name}`];
        return [...(mark === 'ms' ? [] : [name]), ...(mark ? [`com.microsoft.${name}`] : [])];
      }),
    ]),
  );
}

describe('each operator', () => {
  it('has random problems, next to ONNX Runtime', () => {
    const inFlow = ['If', 'ai.onnx.ml.ZipMap']; // in flow.differential.node.test.ts
    const known = new Set([...Object.keys({ ...draws, ...productDraws }), ...inFlow]);
    expect(missingIn(known, [...keys, ...products.keys(), ...composed])).toEqual([]);
  });

  it('is a node of random graphs', () => {
    const found = new Set<string>();
    for (let seed = 1; seed <= 2000; ++seed)
      for (const node of graphOf(seed).model.nodes) found.add(keyOf(node));
    expect(missingIn(found, [...keys, ...products.keys(), ...composed])).toEqual([]);
  });

  it('has a case from the definition of ONNX', () => {
    expect(missingIn(new Set(cases.map(([, node]) => keyOf(node))))).toEqual([]);
  });

  it('is in the table of the guide, which has no other ones', () => {
    const table = operatorsOfGuide();
    const listed = [...table.values()].flat();
    const all = [...keys, ...products.keys(), ...composed, fusedGemm];
    expect(listed.sort()).toEqual([...new Set(all)].sort());
    expect(table.get('products')?.sort()).toEqual([...products.keys(), fusedGemm].sort());
  });
});

describe('runs in each type that it allows', () => {
  let wg: Gemm;
  beforeAll(async () => {
    wg = await createGemm({ models: true });
  });
  afterAll(() => wg.dispose());

  /** The same elements in another type. */
  const cast = ({ shape, ...input }: Input, dtype: OnnxDType): Input => {
    const values = valuesOf({ shape, ...input }).map((value) => Math.trunc(Number(value)));
    const finite = values.map((value) => (Number.isFinite(value) ? value : 0));
    return dtype.endsWith('float16')
      ? { ...bits(dtype as Float, finite), shape }
      : tensor(dtype, shape, finite);
  };

  // The run fails if an operator of src/nn/ does not take the type.
  it.each(rows.map((row) => [row.name.split('@')[0] as string, row] as const))(
    '%s',
    async (key, { inputs: signature }) => {
      const parameters = (signature.split(' > ')[0] as string).split(' ');
      const kindOf = (i: number) => (parameters[i] ?? 'inputs:same').split(/\W/)[1] ?? '';
      /** The input that an input must have the type of. */
      const leaderOf = (i: number): number =>
        kindOf(i) === 'first' ? 0 : kindOf(i) === 'same' ? leaderOf(i - 1) : i;
      // The row takes the product that `expand` makes of the first inputs.
      if (key === 'com.microsoft.Attention') return;
      for (const [what, node] of cases.filter(([, node]) => keyOf(node) === key))
        for (const [leader, given] of node.inputs.entries())
          for (const dtype of kinds[kindOf(leader)]?.split(' ') ?? []) {
            if (!given) continue;
            const inputs = node.inputs.map((input, i) =>
              input && leaderOf(i) === leader ? cast(input, dtype as OnnxDType) : input,
            );
            const results = await runNode(wg, { opset: 17, ...node, inputs });
            expect(results.length, `${what}: ${dtype}`).toBe(node.outputs ?? 1);
          }
    },
  );
});
