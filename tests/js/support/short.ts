/**
 * WGEMM_SHORT_TESTS=1 cuts property tests and leaves large shapes out, since an emulator is slow.
 */

const { process } = globalThis as { process?: { env: Record<string, string | undefined> } };
export const isShort = process?.env.WGEMM_SHORT_TESTS === '1';

/** How often a property test runs, of how often it runs elsewhere. */
export const runs = (all: number): number => (isShort ? all / 20 : all);

/** Cases for `it.each`, whose names come first. */
export const withoutLarge = <T extends readonly unknown[]>(cases: readonly T[]): readonly T[] =>
  isShort ? cases.filter(([name]) => !/^(wide|tall) enough|split K$/.test(String(name))) : cases;
