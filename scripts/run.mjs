// Functions that all scripts share: they find files, start programs, and end a script when
// something is wrong.
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
process.chdir(root);

/** Shared by all clones of one user. cmake/ looks in the same place. */
export const cache =
  process.env.WGEMM_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'wgemm');

const isWindows = process.platform === 'win32';
const pathKey = Object.keys(process.env).find((key) => key.toUpperCase() === 'PATH') ?? 'PATH';
const bin = join(root, 'node_modules', '.bin');
if (process.env[pathKey]?.split(delimiter)[0] !== bin) {
  process.env[pathKey] = [bin, process.env[pathKey]].filter(Boolean).join(delimiter);
}

/** An end that needs one sentence to the user, not a stack trace. */
class Failure extends Error {}

export function fail(sentence) {
  throw new Failure(sentence);
}

/**
 * The frame of every script. System errors (a full disk, no permission) already name the file and
 * the cause.
 */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    const expected = error instanceof Failure || error.syscall;
    console.error(`wgemm: ${expected ? error.message : error.stack}`);
    process.exitCode = 1;
  }
}

export function onPath(program) {
  const names = isWindows ? [`${program}.exe`, `${program}.bat`, `${program}.cmd`] : [program];
  for (const folder of (process.env[pathKey] ?? '').split(delimiter)) {
    for (const name of names) {
      if (folder && existsSync(join(folder, name))) return join(folder, name);
    }
  }
  return undefined;
}

/** The output of a quick query, or undefined when it fails. */
export function query(program, args, options = {}) {
  const { status, stdout } = spawnSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    ...options,
  });
  return status === 0 ? stdout : undefined;
}

/**
 * Runs a program to its end, and fails with the sentence `otherwise` if its exit code is not 0.
 *   input     'inherit' if it reads the standard input of this script
 *   log       the open file that gets its output
 *   quiet     shows its output only if it fails, and then only the last lines
 *   onStatus  is called with each line that it writes to file descriptor 3
 *   bound     ends it when this script ends, even if that is killed: two runs never write at once
 */
export function run(program, args, options = {}) {
  const { cwd = root, env = {}, input = 'ignore', log = 'inherit', quiet = false } = options;
  const { onStatus, bound = false, otherwise } = options;
  if (bound && onPath('setpriv')) {
    args = ['--pdeathsig', 'KILL', program, ...args];
    program = 'setpriv';
  }
  const output = quiet ? 'pipe' : log;
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: [input, output, output, onStatus ? 'pipe' : 'ignore'],
    shell: isWindows && program === 'npm',
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => {
      said = (said + text).slice(-20000);
    });
  }
  let partial = '';
  child.stdio[3]?.setEncoding?.('utf8').on('data', (text) => {
    const lines = (partial + text).split('\n');
    partial = lines.pop();
    lines.forEach(onStatus);
  });
  return new Promise((resolve, reject) => {
    child.on('error', (error) =>
      reject(new Failure(`${program} does not start (${error.code}): ${otherwise}`)),
    );
    child.on('close', (code) => {
      if (code === 0) return resolve();
      if (quiet) process.stderr.write(`${said.trimEnd().split('\n').slice(-15).join('\n')}\n`);
      reject(new Failure(otherwise));
    });
  });
}

/**
 * Runs `body` while no other set-up of this user does. A lock whose owner is gone is taken over.
 */
export async function withLock(body) {
  const lock = join(cache, 'lock');
  const mine = `${lock}.${process.pid}`;
  mkdirSync(cache, { recursive: true });
  writeFileSync(mine, String(process.pid));
  try {
    for (let told = false; !takeLock(lock, mine); await sleep(300)) {
      const owner = ownerOf(lock);
      if (owner === undefined) dropLock(lock, mine);
      else if (!told) {
        console.log(`setup: waiting for another set-up (process ${owner}) to finish`);
        told = true;
      }
    }
    try {
      return await body();
    } finally {
      rmSync(lock, { force: true });
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

/** The lock appears whole, with its owner's number in it, or not at all. */
function takeLock(lock, mine) {
  try {
    linkSync(mine, lock);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

/** Takes a dead owner's lock away, unless another process did and took the lock meanwhile. */
function dropLock(lock, mine) {
  const dead = `${mine}.dead`;
  try {
    renameSync(lock, dead);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return;
  }
  if (ownerOf(dead) !== undefined) renameSync(dead, lock);
  else rmSync(dead, { force: true });
}

function ownerOf(lock) {
  try {
    const pid = Number(readFileSync(lock, 'utf8'));
    if (!pid) return undefined;
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    return error.code === 'EPERM' ? 'of another user' : undefined;
  }
}

/** A bar on a terminal, else a line every 20%. `set` takes percent. */
export async function progress(label) {
  if (process.stdout.isTTY) {
    const { default: cliProgress } = await import('cli-progress');
    const bar = new cliProgress.SingleBar({
      format: `${label} [{bar}] {percentage}% | {eta_formatted} left`,
      hideCursor: false, // an interrupted script would leave it hidden
      barsize: 30,
      barCompleteChar: '#',
      barIncompleteChar: '-',
    });
    bar.start(100, 0);
    return { set: (percent) => bar.update(Math.floor(percent)), stop: () => bar.stop() };
  }
  let next = 20;
  return {
    set(percent) {
      if (percent < next) return;
      console.log(`${label} ${Math.floor(percent)}%`);
      next = Math.floor(percent / 20) * 20 + 20;
    },
    stop() {},
  };
}

/** Options of a command that must be whole numbers from 1, as numbers. */
export function wholeNumbers(values, ...names) {
  return names.map((name) => {
    if (/^[1-9]\d{0,9}$/.test(values[name])) return Number(values[name]);
    return fail(`--${name} is ${values[name]}; it must be a whole number from 1.`);
  });
}
