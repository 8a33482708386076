// Runs the bench here with the settings of the address. It posts each result, and then the end.
import { work } from '../../bench/work.mjs';
import { told } from './perform.js';

const post = (path, value) => fetch(path, { method: 'POST', body: JSON.stringify(value) });
const settings = JSON.parse(new URLSearchParams(location.search).get('settings'));
const crash = await work(settings, (kind, result) => post('/progress', { kind, result })).then(
  () => undefined,
  told,
);
await post('/result', { crash });
