/** Random calls of every operation in little memory: the same as with room. */
import { expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { createLinear } from 'wgemm/linear';
import { instancesOf, tryCall } from '../../fuzz/calls.mjs';
import { runs } from '../support/short.js';

it('random calls in little memory are the same as with room', async () => {
  const whole = await createGemm({ determinism: 'strict' });
  const instances = await instancesOf(createGemm, {});
  const seeds = runs(600);
  let outOfCore = 0;
  for (let seed = 1; seed <= seeds; ++seed) {
    const done = tryCall(seed, whole, instances, createLinear);
    expect(done.faults).toEqual([]);
    outOfCore += done.outOfCore;
  }
  // Some calls fit in memory, and calls of layers are not counted.
  expect(outOfCore).toBeGreaterThan(0.4 * seeds * instances.length);
  for (const { wg } of [{ wg: whole }, ...instances]) wg.dispose();
});
