// Drives a browser by the W3C WebDriver protocol, as WebKitWebDriver and safaridriver speak it.
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { refuse } from '../package/results.mjs';

/** ms for a command; a new session hangs if its browser does not start. */
const patience = 60_000;

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export class WebDriver {
  #url;

  /**
   * Starts a driver and a browser. The driver ends with the session of programs in which it starts.
   *
   * @param session a Session of engines.mjs
   * @param program the driver
   * @param environment variables for the driver and its browser
   * @param capabilities that the browser must have
   */
  static async start(session, { program, environment, capabilities }) {
    const driver = new WebDriver();
    const port = await freePort();
    const { ended, said } = session.start(program, ['-p', String(port)], environment);
    Object.assign(driver, { ended, said });
    const base = `http://127.0.0.1:${port}`;
    let isEnded = false;
    void ended.then(() => (isEnded = true));
    while (!(await fetch(`${base}/status`).catch(() => undefined))) {
      if (isEnded) throw new Error(`${program} does not start: ${said()}`);
      await sleep(50);
    }
    const { sessionId } = await call('POST', `${base}/session`, {
      capabilities: { alwaysMatch: capabilities },
    });
    driver.#url = `${base}/session/${sessionId}`;
    await driver.post('timeouts', { script: patience, pageLoad: patience });
    return driver;
  }

  post(path, body = {}) {
    return call('POST', `${this.#url}/${path}`, body);
  }

  get(path) {
    return call('GET', `${this.#url}/${path}`);
  }

  /** Ends the browser, which need not be a child of the driver. */
  async end() {
    await call('DELETE', this.#url).catch(() => {}); // it may be gone
  }
}

async function call(method, url, body) {
  const response = await fetch(url, {
    method,
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(patience),
  });
  const { value } = await response.json();
  if (!response.ok) refuse(`WebDriver: ${value.error}: ${value.message}`);
  return value;
}
