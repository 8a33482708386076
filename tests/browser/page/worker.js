// Runs the task that the page names.
import { perform } from './perform.js';

self.onmessage = async ({ data: settings }) => self.postMessage(await perform(settings));
