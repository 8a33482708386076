/** Makes tests that state no build run on simd128. */
import { hideRelaxed } from './relaxed.js';

hideRelaxed();
