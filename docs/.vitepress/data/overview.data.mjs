import { defineLoader } from 'vitepress';
import { loadOverview } from './bench.mjs';

export default defineLoader({ watch: ['../../bench/runs.json'], load: () => loadOverview() });
