// Drives WebKitGTK by the W3C WebDriver protocol: WebKitWebDriver starts MiniBrowser on a virtual
// display.
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fail, onPath } from '../../scripts/run.mjs';
import { programOf, Session } from '../browser/engines.mjs';
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
  #session = new Session();
  #url;

  /**
   * Starts the driver and a browser.
   *
   * @param environment variables for the browser
   * @param settings of GTK: name -> value
   */
  static async start({ environment = {}, settings = {} }) {
    const driver = new WebDriver();
    try {
      await driver.#start(environment, settings);
      return driver;
    } catch (error) {
      await driver.end();
      throw error;
    }
  }

  async #start(environment, settings) {
    const { folder } = this.#session;
    mkdirSync(join(folder, 'gtk-3.0'));
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(join(folder, 'gtk-3.0', 'settings.ini'), `[Settings]\n${lines.join('')}`);
    // Without it, the buttons of the window keep it wider than a phone.
    writeFileSync(join(folder, 'gtk-3.0', 'gtk.css'), '* { min-width: 0; margin: 0; padding: 0 }');
    const program =
      onPath('WebKitWebDriver') ??
      fail('WebKitWebDriver is not here: install the package webkit2gtk-driver.');
    const port = await freePort();
    const { ended, said } = this.#session.start(program, [`--port=${port}`], {
      ...(await this.#session.environmentOf('webkit')),
      ...environment,
    });
    const base = `http://127.0.0.1:${port}`;
    let isEnded = false;
    void ended.then(() => (isEnded = true));
    while (!(await fetch(`${base}/status`).catch(() => undefined))) {
      if (isEnded) throw new Error(`WebKitWebDriver does not start: ${said()}`);
      await sleep(50);
    }
    const { sessionId } = await call('POST', `${base}/session`, {
      capabilities: {
        alwaysMatch: {
          browserName: 'MiniBrowser',
          'webkitgtk:browserOptions': { binary: programOf('webkit'), args: ['--automation'] },
        },
      },
    });
    this.#url = `${base}/session/${sessionId}`;
    await this.post('timeouts', { script: patience, pageLoad: patience });
  }

  post(path, body = {}) {
    return call('POST', `${this.#url}/${path}`, body);
  }

  get(path) {
    return call('GET', `${this.#url}/${path}`);
  }

  async end() {
    if (this.#url) await call('DELETE', this.#url).catch(() => {}); // it may be gone
    await this.#session.end();
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
