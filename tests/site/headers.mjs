/**
 * The strictest Content-Security-Policy that the site promises to work under. It allows inline
 * styles, since Vue sets the style of elements, and images from data, since icons are data.
 */
export const siteHeaders = {
  'content-security-policy':
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
};
