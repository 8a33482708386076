import { defineLoader } from 'vitepress';
import { loadHome } from './front.mjs';

export default defineLoader({ watch: ['../../bench/runs.json'], load: () => loadHome() });
