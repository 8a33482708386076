import { defineLoader } from 'vitepress';
import { loadHome } from './bench.mjs';

export default defineLoader({ watch: ['../../bench/runs.json'], load: () => loadHome() });
