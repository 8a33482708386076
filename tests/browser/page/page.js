// Runs the task that the address names, here or in a worker, and posts the result to the server,
// whatever happens.
import { perform, told } from './perform.js';

const settings = Object.fromEntries(new URLSearchParams(location.search));

function inWorker() {
  const worker = new Worker('/page/worker.js', { type: 'module' });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(`the worker failed: ${event.message ?? 'its script could not be loaded'}`));
    };
    worker.postMessage(settings);
  });
}

const result = await (settings.place === 'worker' ? inWorker() : perform(settings)).catch(
  (error) => ({ crash: told(error) }),
);
await fetch('/result', { method: 'POST', body: JSON.stringify(result) });
