import type * as Tfjs from '@tensorflow/tfjs-core';

export function bundleTfjsTests(): Promise<{ tf: typeof Tfjs; declareTests: () => void }>;
