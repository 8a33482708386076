// What page and worker have in common: runs a task, and tells of it with all that the engine
// complained of meanwhile.

export function told(error) {
  if (!(error instanceof Error)) return String(error);
  return `${error.name}: ${error.message}${error.cause === undefined ? '' : `, since ${told(error.cause)}`}`;
}

const tasks = {
  /** The API tests and the vectors. */
  suite: async (settings) => (await import('/suite/suite.js')).runSuite(settings),
  /** How creation fails, under a policy that does not allow it. */
  async refusal() {
    const { createGemm, GemmError } = await import('/dist/index.js');
    try {
      return { created: (await createGemm()).info };
    } catch (error) {
      return { isGemmError: error instanceof GemmError, code: error.code, message: error.message };
    }
  },
};

/**
 * The result of a task, with what the engine is and has, violations of the policy, and errors that
 * nothing caught.
 */
export async function perform({ task, ...settings }) {
  const violations = [];
  const uncaught = [];
  const target = typeof document === 'undefined' ? self : document; // a page's come to the document
  target.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
    violations.push(`${violatedDirective} ${blockedURI}`),
  );
  self.addEventListener('error', ({ message }) => uncaught.push(message));
  self.addEventListener('unhandledrejection', ({ reason }) => uncaught.push(told(reason)));
  const result = await tasks[task](settings).catch((error) => ({ crash: told(error) }));
  await new Promise((resolve) => setTimeout(resolve, 50)); // these events come late
  return {
    ...result,
    violations,
    uncaught,
    userAgent: navigator.userAgent,
    crossOriginIsolated: self.crossOriginIsolated,
    hasSharedArrayBuffer: typeof SharedArrayBuffer === 'function',
  };
}
