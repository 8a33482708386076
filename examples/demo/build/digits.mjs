// The digits and the trained network of the demo, as files made at build time.
export function digits() {
  return { name: 'digits' };
}
