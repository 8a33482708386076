// Runs in a page before its scripts, and in its worker: records what must not happen. It has
// neither imports nor exports, since it is a classic script in the page.
{
  const isPage = typeof document !== 'undefined';
  const channel = new BroadcastChannel('test-record');
  const record = [];
  const note = isPage ? (what) => record.push(what) : (what) => channel.postMessage(what);
  if (isPage) {
    window.testRecord = record;
    channel.onmessage = ({ data }) => record.push(`${data} (in the worker)`);
  }

  // In WebKit and Firefox, the stack does not contain the message.
  const textOf = (error) =>
    error?.stack?.includes(error) ? error.stack : `${error} ${error?.stack ?? ''}`.trim();

  addEventListener(
    'error',
    ({ target, message, filename, lineno, error }) => {
      const file = target?.src ?? target?.href;
      if (file) note(`failed: ${file}`);
      else note(`error: ${error ? textOf(error) : message} (${filename}:${lineno})`);
    },
    true, // files that do not load tell only their elements
  );
  addEventListener('unhandledrejection', ({ reason }) => {
    note(`error: nothing handles ${textOf(reason)}`);
  });
  addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) => {
    note(`policy: ${violatedDirective}: ${blockedURI} ${sample}`);
  });
  for (const level of ['error', 'warn', 'assert']) {
    const original = console[level];
    console[level] = (...values) => {
      original.apply(console, values);
      if (level !== 'assert' || !values[0]) note(`console: ${values.join(' ')}`);
    };
  }

  // Without a locale, WebKitGTK has the language C, which Intl and so uPlot refuse.
  if (navigator.language === 'C') Object.defineProperty(navigator, 'language', { get: () => 'en' });
}
