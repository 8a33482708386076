import { demoHeaders } from '../demo/headers.mjs';

/**
 * The strictest Content-Security-Policy that the site promises to work under. It allows inline
 * styles, since Vue sets the style of elements, and images from data, since icons are data.
 */
const pageHeaders = {
  'content-security-policy':
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
};

/**
 * The headers by path: the demo also needs WebAssembly, and shared memory for its threads. The
 * worker of the home page needs WebAssembly, and has a policy of its own.
 */
export function siteHeaders(path) {
  if (path.includes('/demo/')) return demoHeaders({ isIsolated: true });
  return path.includes('/live/') ? demoHeaders({ isIsolated: false }) : pageHeaders;
}
