import { defineLoader } from 'vitepress';
import { loadRuns } from './bench.mjs';

export default defineLoader({ watch: ['../../bench/runs.json'], load: loadRuns });
