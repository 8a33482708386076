// Starts WebKitGTK: WebKitWebDriver starts MiniBrowser on a virtual display.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, onPath } from '../../scripts/run.mjs';
import { programOf, Session } from './engines.mjs';
import { WebDriver } from './webdriver.mjs';

/**
 * Starts the driver and a browser.
 *
 * @param environment variables for the browser
 * @param settings of GTK: name -> value
 * @returns `post` of WebDriver, and `end()`
 */
export async function startWebKit({ environment = {}, settings = {} }) {
  const session = new Session();
  try {
    const styles = join(session.folder, 'gtk-3.0');
    mkdirSync(styles);
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(join(styles, 'settings.ini'), `[Settings]\n${lines.join('')}`);
    // Without it, the buttons of the window keep it wider than a phone.
    writeFileSync(join(styles, 'gtk.css'), '* { min-width: 0; margin: 0; padding: 0 }');
    const driver = await WebDriver.start(session, {
      program:
        onPath('WebKitWebDriver') ??
        fail('WebKitWebDriver is not here: install the package webkit2gtk-driver.'),
      environment: { ...(await session.environmentOf('webkit')), ...environment },
      capabilities: {
        browserName: 'MiniBrowser',
        'webkitgtk:browserOptions': { binary: programOf('webkit'), args: ['--automation'] },
      },
    });
    return {
      post: (path, body) => driver.post(path, body),
      async end() {
        await driver.end();
        await session.end();
      },
    };
  } catch (error) {
    await session.end();
    throw error;
  }
}
