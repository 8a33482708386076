// Runs what the page asks for.
import { perform } from './perform.js';

self.onmessage = async ({ data: settings }) => self.postMessage(await perform(settings));
