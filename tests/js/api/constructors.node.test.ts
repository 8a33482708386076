/** Classes that only the package makes instances of. TypeScript refuses `new`; JavaScript may try. */
import { expect, it } from 'vitest';
import { ArgumentError, WorkerGemm } from 'wgemm/worker';

it('new WorkerGemm() names createGemm', () => {
  const Class = WorkerGemm as unknown as new () => WorkerGemm;
  expect(() => new Class()).toThrow(ArgumentError);
  expect(() => new Class()).toThrow(/call createGemm\(\)/);
});
