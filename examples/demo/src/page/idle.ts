/** Resolves once the page has been idle: after the wait, when the browser has nothing to do. */
export async function idle(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  await new Promise<void>((resolve) => {
    // WebKit does not have it.
    if (typeof requestIdleCallback === 'function')
      requestIdleCallback(() => resolve(), { timeout: 2000 });
    else setTimeout(resolve);
  });
}
