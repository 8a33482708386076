/**
 * The strictest Content-Security-Policy that the site promises to work under. Vue sets the style of
 * elements, and icons are data.
 */
export const siteHeaders = {
  'content-security-policy':
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
};
