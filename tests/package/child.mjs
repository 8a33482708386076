// Runs a program to its end. Returns its output, or throws an error that has it.
import { spawn } from 'node:child_process';
import { refuse } from './results.mjs';

const running = new Set(); // process groups

function endAll() {
  for (const group of running) {
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      // it has ended
    }
  }
}
process.on('exit', endAll);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    endAll();
    process.kill(process.pid, signal); // now with the default effect
  });
}

/** @returns what the program wrote to standard output */
export function runChild(program, args, { cwd, env = {}, timeout = 120_000, input } = {}) {
  return new Promise((resolve, reject) => {
    // A separate group, so that its children end with it at the timeout.
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    if (child.pid) running.add(child.pid);
    let [out, all, late] = ['', '', false];
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text;
      all += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text) => (all += text));
    child.stdin.on('error', () => {}).end(input);
    const timer = setTimeout(() => {
      late = true;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        child.kill('SIGKILL');
      }
    }, timeout);
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      running.delete(child.pid);
      if (code === 0) return resolve(out);
      const how = late ? `did not end within ${timeout / 1000} s` : `ended with ${signal ?? code}`;
      const said = all.trimEnd().split('\n').slice(-30).join('\n');
      try {
        refuse(
          `${[program, ...args].join(' ').slice(0, 300)}\n${how}${said && `; it said\n${said}`}`,
        );
      } catch (failure) {
        reject(failure);
      }
    });
  });
}
