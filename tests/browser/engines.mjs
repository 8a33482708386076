// Starts browsers as programs, with the address of a page and without a driver. Each has its own
// profile, which is removed. Safari takes no address, so its driver opens the page.
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findBrowser, variableOf } from '../../scripts/browsers.mjs';
import { fail, onPath } from '../../scripts/run.mjs';
import { pageAt } from './server.mjs';
import { WebDriver } from './webdriver.mjs';

const isRoot = process.getuid?.() === 0;
const isWindows = process.platform === 'win32';

/**
 * By name: the arguments that open an address, and what must exist before. `display`: the program
 * opens a window, and needs a display. `capabilities`: the program is a driver.
 */
const engines = {
  chromium: {
    title: 'Chromium',
    arguments: (profile, url) => [
      '--headless=new',
      ...(isRoot ? ['--no-sandbox'] : []),
      `--user-data-dir=${profile}`,
      '--no-first-run',
      '--no-default-browser-check',
      '--disable-background-networking',
      '--disable-breakpad',
      '--disable-component-update',
      '--disable-dev-shm-usage', // it is small in containers
      '--disable-gpu',
      '--disable-sync',
      '--js-flags=--expose-gc', // for the tests that watch the collector
      url,
    ],
  },
  firefox: {
    title: 'Firefox',
    arguments: (profile, url) => ['--headless', '--no-remote', '--profile', profile, url],
    prepare(profile) {
      const preferences = {
        'app.update.enabled': false,
        'browser.aboutwelcome.enabled': false,
        'browser.shell.checkDefaultBrowser': false,
        'browser.startup.homepage_override.mstone': 'ignore',
        'browser.startup.page': 0,
        'datareporting.policy.dataSubmissionEnabled': false,
        'datareporting.policy.firstRunURL': '',
        'dom.max_script_run_time': 0, // never asks whether to stop a slow script
        'network.captive-portal-service.enabled': false,
        'network.connectivity-service.enabled': false,
        'startup.homepage_welcome_url': '',
        'toolkit.telemetry.reportingpolicy.firstRun': false,
      };
      const lines = Object.entries(preferences).map(
        ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`,
      );
      writeFileSync(join(profile, 'user.js'), lines.join(''));
    },
  },
  webkit: {
    title: 'WebKitGTK',
    display: true,
    arguments: (_, url) => ['--private', url],
    // No session bus and no accelerated drawing exist or are needed.
    environment: {
      GSETTINGS_BACKEND: 'memory',
      NO_AT_BRIDGE: '1',
      GTK_A11Y: 'none',
      WEBKIT_DISABLE_COMPOSITING_MODE: '1',
      GDK_BACKEND: 'x11',
    },
  },
  // Not yet run by us: macOS alone has it.
  safari: {
    title: 'Safari',
    // Tests run while the page loads.
    capabilities: { browserName: 'safari', pageLoadStrategy: 'none' },
    // The driver asks macOS for its user's Safari.
    environment: Object.fromEntries(
      ['HOME', 'TMPDIR'].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
    ),
  },
};

/** Safari has one session at a time, and only on macOS, so it must be asked for. */
export const allEngines = Object.keys(engines);
export const engineNames = allEngines.filter((name) => name !== 'safari');
export const titleOf = (engine) => engines[engine].title;

const versions = new Map();

/** The version that the program prints; '' if it prints none. */
export function versionOf(engine) {
  if (!versions.has(engine)) versions.set(engine, askVersion(engine));
  return versions.get(engine);
}

async function askVersion(engine) {
  const session = new Session();
  try {
    const { child, ended, said } = session.start(
      programOf(engine),
      ['--version'],
      await session.environmentOf(engine),
    );
    await Promise.race([
      new Promise((resolve) => child.once('close', resolve)),
      ended.then(() => sleep(500)),
      sleep(20_000, undefined, { ref: false }),
    ]);
    return /\d+(\.\d+)+/.exec(said())?.[0] ?? '';
  } finally {
    await session.end();
  }
}

/** The program of an engine; a failure if there is none. */
export const programOf = (engine) =>
  findBrowser(engine) ??
  fail(`${titleOf(engine)} is not here: install it, or name its program in ${variableOf(engine)}.`);

/**
 * Opens the address of a page, which a server of this process serves, and returns what the page
 * posts to /result. Throws an error that says what the browser did instead.
 *
 * @param timeout seconds
 * @param environment variables for the browser, besides those that it needs
 * @param flags arguments of the program, besides those that it needs
 * @param onProgress called with each text that the page posts to /progress
 */
export async function openIn(
  engine,
  url,
  { timeout = 60, environment = {}, flags = [], onProgress = () => {} } = {},
) {
  const { title, arguments: argumentsOf, prepare, capabilities } = engines[engine];
  const page = Object.assign(pageAt(url), { onProgress });
  const session = new Session();
  let driver;
  try {
    const profile = join(session.folder, 'profile');
    mkdirSync(profile);
    prepare?.(profile);
    const result = new Promise((resolve) => (page.onResult = resolve));
    const program = programOf(engine);
    const its = { ...(await session.environmentOf(engine)), ...environment };
    if (capabilities) {
      driver = await WebDriver.start(session, { program, environment: its, capabilities });
      await driver.post('url', { url });
    }
    const browser = driver ?? session.start(program, [...flags, ...argumentsOf(profile, url)], its);
    const ended = browser.ended.then((how) =>
      Promise.reject(new Error(`${title} ended (${how}) before the page told its result`)),
    );
    const late = sleep(timeout * 1000, undefined, { ref: false }).then(() => {
      const far = page.progress
        ? `; the last that it told was '${page.progress}'`
        : '; it told nothing';
      return Promise.reject(new Error(`${title} told no result within ${timeout} s${far}`));
    });
    late.catch(() => {});
    try {
      return await Promise.race([result, ended, late]);
    } catch (error) {
      const missing = page.missing.filter((path) => path !== '/favicon.ico');
      if (missing.length > 0)
        error.message += `; it asked for ${missing.join(', ')}, which the server does not have`;
      const isNoise = (line) => line.includes('dbus/'); // it complains that there is no bus
      const lines = browser.said().split('\n');
      const said = lines
        .filter((line) => line.trim() && !isNoise(line))
        .slice(-8)
        .join('\n    ');
      error.message += said ? `; the browser said:\n    ${said}` : '';
      throw error;
    }
  } finally {
    page.onResult = page.onProgress = () => {};
    await driver?.end();
    await session.end();
  }
}

/** The programs that show one page, and the only folder that they write to. */
export class Session {
  static #open = new Set();
  #children = [];

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'wgemm-browser-'));
    if (Session.#open.size === 0) Session.#watch();
    Session.#open.add(this);
  }

  start(program, args, env, stdio = ['ignore', 'pipe', 'pipe']) {
    // If Linux can, it ends the program with this script, even if that is killed.
    const bound = onPath('setpriv') ? ['setpriv', '--pdeathsig', 'KILL', program] : [program];
    const own = Object.fromEntries(
      [
        'HOME',
        'TMPDIR',
        'TEMP',
        'TMP',
        'XDG_CACHE_HOME',
        'XDG_CONFIG_HOME',
        'XDG_DATA_HOME',
        'XDG_RUNTIME_DIR',
      ].map((name) => [name, this.folder]),
    );
    const child = spawn(bound[0], [...bound.slice(1), ...args], {
      cwd: this.folder,
      env: { ...process.env, ...(isWindows ? {} : own), ...env },
      stdio,
      detached: !isWindows, // so that it leads a process group, which is ended as one
    });
    this.#children.push(child);
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text) => (said = (said + text).slice(-4000)));
    const ended = new Promise((resolve) => {
      child.on('error', (error) => resolve(error.code));
      child.on('exit', (code, signal) => resolve(signal ?? `code ${code}`));
    });
    return { child, ended, said: () => said };
  }

  /** Variables that an engine needs in its environment. */
  async environmentOf(engine) {
    const { display, environment } = engines[engine];
    return {
      ...environment,
      ...(display && process.platform === 'linux' ? { DISPLAY: await this.#startDisplay() } : {}),
    };
  }

  /** Starts a virtual display, which chooses a free number. */
  async #startDisplay() {
    const { child, ended, said } = this.start(
      onPath('Xvfb') ?? fail('Xvfb is not here, which WebKitGTK needs: install it.'),
      ['-displayfd', '3', '-screen', '0', '1280x1024x24', '-nolisten', 'tcp'],
      {},
      ['ignore', 'ignore', 'pipe', 'pipe'],
    );
    const number = new Promise((resolve) => {
      let text = '';
      child.stdio[3].setEncoding('utf8').on('data', (part) => {
        text += part;
        if (text.endsWith('\n')) resolve(`:${text.trim()}`);
      });
    });
    const none = Promise.race([
      ended,
      sleep(20_000, 'it told no display within 20 s', { ref: false }),
    ]).then((how) => Promise.reject(new Error(`Xvfb does not start (${how}): ${said()}`)));
    none.catch(() => {});
    return await Promise.race([number, none]);
  }

  async end() {
    this.#signal('SIGTERM'); // the X server removes its lock
    for (let waited = 0; waited < 2000 && this.#isRunning(); waited += 50) await sleep(50);
    this.#signal('SIGKILL');
    for (let waited = 0; waited < 3000 && this.#isRunning(); waited += 50) await sleep(50);
    this.#remove();
  }

  /** Does all of `end` synchronously, since this process is about to end. */
  #endNow() {
    this.#signal('SIGTERM');
    this.#pause(300);
    this.#signal('SIGKILL');
    this.#pause(200);
    this.#remove();
  }

  #pause(milliseconds) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
  }

  #remove() {
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    Session.#open.delete(this);
    if (Session.#open.size === 0) Session.#unwatch();
  }

  /**
   * The process groups that were started, and processes that left their group: their environment
   * still names our folder.
   */
  #targets() {
    const groups = this.#children.flatMap(({ pid }) => (pid === undefined ? [] : [-pid]));
    const strays = existsSync('/proc/self/environ') ? processesWith(this.folder) : [];
    return [...groups, ...strays];
  }

  #isRunning() {
    return existsSync('/proc/self/environ')
      ? processesWith(this.folder).length > 0
      : this.#targets().some((target) => send(target, 0));
  }

  #signal(signal) {
    if (!isWindows) for (const target of this.#targets()) send(target, signal);
    else if (signal === 'SIGKILL')
      for (const { pid } of this.#children)
        spawnSync('taskkill', ['/pid', String(pid), '/t', '/f']);
  }

  static #handlers = Object.fromEntries(
    ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => [
      signal,
      () => {
        Session.#endAll();
        process.kill(process.pid, signal); // now with the default effect
      },
    ]),
  );

  static #endAll = () => {
    for (const session of [...Session.#open]) session.#endNow();
  };

  static #watch() {
    for (const [signal, handler] of Object.entries(Session.#handlers)) process.on(signal, handler);
    process.on('exit', Session.#endAll);
  }

  static #unwatch() {
    for (const [signal, handler] of Object.entries(Session.#handlers)) process.off(signal, handler);
    process.off('exit', Session.#endAll);
  }
}

/**
 * Processes of Linux whose environment names the folder. Zombies have no environment, and are left
 * out.
 */
function processesWith(folder) {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) &&
        readFileSync(join('/proc', name, 'environ'), 'utf8').includes(folder)
        ? [Number(name)]
        : [];
    } catch {
      return []; // it ended, or belongs to another user
    }
  });
}

function send(pid, signal) {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false; // there is none
  }
}
