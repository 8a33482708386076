import type { Tf } from './tfjs-backends.mjs';

export function bundleTfjsTests(): Promise<{ tf: Tf; declareTests: () => void }>;
