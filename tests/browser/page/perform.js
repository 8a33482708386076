// Shared by page and worker: runs a task, and reports it with every complaint of the engine in the
// meantime.

export function told(error) {
  if (!(error instanceof Error)) return String(error);
  return (
    `${error.name}: ` +
    `${error.message}${error.cause === undefined ? '' : `, since ${told(error.cause)}`}`
  );
}

const tasks = {
  /** The API tests and the vectors. */
  suite: async (settings) => (await import('/suite/suite.js')).runSuite(settings),
  /** How createGemm fails, under a policy that forbids WebAssembly. */
  async refusal() {
    const { createGemm, GemmError } = await import('/dist/index.js');
    try {
      return { created: (await createGemm()).info };
    } catch (error) {
      return { isGemmError: error instanceof GemmError, code: error.code, message: error.message };
    }
  },
  cdn: async (settings) => (await import('/page/cdn.js')).fromCdn(settings),
};

/**
 * The result of a task, with the engine and its features, violations of the policy, and uncaught
 * errors.
 */
export async function perform({ task, ...settings }) {
  const violations = [];
  const uncaught = [];
  // A page receives them at its document.
  const target = typeof document === 'undefined' ? self : document;
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
