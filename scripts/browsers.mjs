// Finds the browsers that the tests start: an environment variable names them, or they are on PATH,
// or at the system's usual place.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fail, onPath } from './run.mjs';

const programFiles = [process.env.ProgramFiles, process.env['ProgramFiles(x86)']].filter(Boolean);

const browsers = {
  chromium: {
    variable: 'WGEMM_CHROMIUM',
    programs: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'],
    paths: () => [
      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
      ...programFiles.map((folder) =>
        join(folder, 'Google', 'Chrome', 'Application', 'chrome.exe'),
      ),
    ],
  },
  firefox: {
    variable: 'WGEMM_FIREFOX',
    programs: ['firefox-esr', 'firefox'],
    paths: () => [
      '/Applications/Firefox.app/Contents/MacOS/firefox',
      ...programFiles.map((folder) => join(folder, 'Mozilla Firefox', 'firefox.exe')),
    ],
  },
  // The small browser that comes with WebKitGTK, which installs it outside PATH.
  webkit: {
    variable: 'WGEMM_MINIBROWSER',
    programs: ['MiniBrowser'],
    paths: () =>
      ['/usr/lib', '/usr/libexec'].flatMap((top) =>
        [top, ...foldersIn(top)].flatMap((folder) =>
          ['4.1', '6.0'].map((api) => join(folder, `webkit2gtk-${api}`, 'MiniBrowser')),
        ),
      ),
  },
  // Its driver, which `sudo safaridriver --enable` allows to drive it.
  safari: { variable: 'WGEMM_SAFARIDRIVER', programs: ['safaridriver'], paths: () => [] },
};

/** The environment variable that names the program of an engine. */
export const variableOf = (engine) => browsers[engine].variable;

/** The program of 'chromium', 'firefox', 'webkit' or 'safari'; undefined if there is none. */
export function findBrowser(engine) {
  const { variable, programs, paths } = browsers[engine];
  const named = process.env[variable];
  if (!named) return programs.map(onPath).find(Boolean) || paths().find((path) => existsSync(path));
  if (existsSync(named)) return named;
  return (
    onPath(named) ?? fail(`${variable} is ${named}, which is not here: correct it, or unset it.`)
  );
}

function foldersIn(folder) {
  return existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
        entry.isDirectory() ? [join(folder, entry.name)] : [],
      )
    : [];
}
