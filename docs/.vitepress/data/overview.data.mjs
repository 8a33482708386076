import { defineLoader } from 'vitepress';
import { loadOverview } from './overview.mjs';

export default defineLoader({ watch: ['../../bench/runs.json'], load: () => loadOverview() });
