/** Types of tfjs-bundle.mjs, for the tests in TypeScript. */
import type { Tf } from './tfjs-backends.mjs';

export function bundleTfjs(): Promise<{ tf: Tf; declareTests: () => void }>;
