import { isolation } from '../browser/server.mjs';

/** The headers under which the demo is tested: a strict policy, and those that threads need. */
export const demoHeaders = ({ isIsolated }) => ({
  'content-security-policy':
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data:; " +
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  ...(isIsolated ? isolation : {}),
});
