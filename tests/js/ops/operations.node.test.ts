/**
 * bindings/embind.cc reads the block of arguments in the order of js/ops/operations.ts, and
 * js/base/properties.ts guards the names there.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Operation, Product } from '../../../js/call/call.js';
import { operations, parameterNames } from '../../../js/ops/operations.js';

const numberIn = (path: string, pattern: RegExp) => pattern.exec(sourceOf(path))?.[1];

const sourceOf = (path: string) =>
  readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const source = sourceOf('bindings/embind.cc');
/** What isPolluted() of js/base/properties.ts looks for in Object.prototype. */
const guarded = sourceOf('js/base/properties.ts').matchAll(/'(\w+)' in base/g);
const guardedNames = new Set(Array.from(guarded, ([, name]) => name));
const [, list = ''] = /kOperations\[\]\)\([^{]*\{([^}]*)\}/.exec(source) ?? [];
/** The structs of embind.cc that read the arguments, in the order of the numbers. */
const structs = Array.from(list.matchAll(/perform<(\w+)>/g), ([, name]) => name);

/** Numbers that each method of the reader takes, for attributes. */
const words: Record<string, number> = {
  factor: 2,
  activation: 2,
  number: 1,
  integer: 1,
  quantized_op: 1,
};

/** What the constructor of a struct reads, in order: the member it sets, if any, and the method. */
function readsOf(struct: string): { member: string; method: string }[] {
  const start = `explicit ${struct}\\(double\\* scalars\\)`;
  const [, body = ''] = new RegExp(`${start}(.*?)\\n {2}\\}`, 's').exec(source) ?? [];
  const [, nbits = ''] = /NBitsWeights read_nbits\([^)]*\) \{(.*?)\n\}/s.exec(source) ?? [];
  const whole = body
    .replace(/read_nbits\([^;]*;/, nbits)
    // The loop over the scales and zero points.
    .replace(/for \(int i = 0; [^)]*\) (args[^;]*;)/, (_, each: string) =>
      each.repeat(parameterNames.length),
    );
  return Array.from(whole.matchAll(/(?:\w+\.(\w+) = )?reader\.(\w+)\(/g), ([, member, method]) => ({
    member: member?.replaceAll('_', '').toLowerCase() ?? '',
    method: method as string,
  }));
}

describe('the row of', () => {
  it.each(Object.values(operations) as unknown as Operation[])('$name', (row) => {
    let number = -1;
    row.run({ compute: (given: number) => ((number = given), 0) } as never, 0);
    const reads = readsOf(structs[number] as string);
    const attributes = reads.filter(({ method }) => method in words);
    const operands = reads.filter(({ method }) => !(method in words));
    const names = Object.entries(row.attributes.at);
    expect(attributes).toHaveLength(names.length);
    let end = 0;
    for (const [i, { member, method }] of attributes.entries()) {
      const [name, at] = names[i] as [string, number];
      if (member !== '') expect(name.toLowerCase()).toBe(member);
      expect(at, name).toBe(end);
      end += words[method] as number;
    }
    expect(row.attributes.length).toBe(end);
    expect(operands.map(({ method }) => method).indexOf('output')).toBe(
      row.operands.indexOf('out'),
    );
    const factor = operands.findIndex(({ method }) => method === 'weights');
    const { matrices } = row as Partial<Product>;
    expect(row.operands[factor]).toBe(matrices?.[1]);
    if (matrices) expect(row.operands.slice(-4)).toEqual([...matrices, 'out']);
    for (const name of [...row.inputs, ...row.options]) expect(guardedNames).toContain(name);
  });
});

it('small calls have the same bounds in js/ and in the core', () => {
  const inJs = numberIn('js/call/small.ts', /mostSmall = (\d+)/);
  expect(inJs).toBe(numberIn('src/plan/select_kernel.cc', /kMostUnfused = (\d+)/));
  const room = numberIn('js/call/staging.ts', /smallRoom = (\d+)/);
  expect(room).toBe(numberIn('bindings/embind.cc', /staging\[(\d+)\]/));
  expect(inJs).toMatch(/\d/);
  expect(room).toMatch(/\d/);
});
