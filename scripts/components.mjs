// Finds the other projects whose code the published files contain. The build shows them: its link
// maps, the sources that the compiler read, and the source maps. NOTICE must name exactly these
// projects, and the SBOM lists them.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fail, query } from './run.mjs';

/**
 * One row per project. `from`: the paths of its sources, headers and libraries. `license`: by SPDX.
 * `version`: from the folders of a checkout and of Emscripten. A project of `isNative` is only
 * in the native library, so that it is in NOTICE and not in the SBOM.
 */
const components = [
  {
    name: 'XNNPACK',
    license: 'BSD-3-Clause',
    from: /^.*\/xnnpack[-_][^/]*(?=\/)/i,
    ...ofGitHub('google/XNNPACK'),
  },
  {
    name: 'SIMDe',
    license: 'MIT',
    from: /^.*\/simde[-_][^/]*(?=\/)/i,
    isNative: true,
    ...ofGitHub('simd-everywhere/simde'),
  },
  {
    name: 'Emscripten',
    license: 'MIT',
    from: /\/lib(embind|stubs|noexit|bulkmemory)[\w-]*\.a$|\/include\/emscripten[./]|\.mjs$/,
    version: (_, emscripten) => textOf(emscripten, 'emscripten-version.txt', /\d+\.\d+\.\d+/),
    purl: (version) => `pkg:github/emscripten-core/emscripten@${version}`,
  },
  {
    name: 'musl',
    license: 'MIT',
    from: /\/libc(-\w+)*\.a$|\/sysroot\/include\/(?!c\+\+|emscripten|wasm)/,
    version: (_, emscripten) => textOf(emscripten, 'system/lib/libc/musl/VERSION', /[\d.]+/),
    purl: (version) => `pkg:generic/musl@${version}`,
  },
  ...[
    ['libc++', 'libcxx', /\/libc\+\+(-\w+)*\.a$|\/sysroot\/include\/c\+\+\//],
    ['libc++abi', 'libcxxabi', /\/libc\+\+abi(-\w+)*\.a$/],
    ['compiler-rt', 'compiler-rt', /\/libcompiler_rt(-\w+)*\.a$/],
  ].map(([name, folder, from]) => ({
    name,
    license: 'Apache-2.0 WITH LLVM-exception',
    from,
    version: (_, emscripten) =>
      textOf(emscripten, 'system/lib/libcxx/include/__config', /_LIBCPP_VERSION (\d{6})/)
        .match(/../g)
        .map(Number)
        .join('.'),
    purl: (version) => `pkg:github/llvm/llvm-project@llvmorg-${version}#${folder}`,
  })),
  {
    name: 'dlmalloc',
    license: 'CC0-1.0',
    from: /\/libdlmalloc[\w-]*\.a$/,
    version: (_, emscripten) =>
      textOf(emscripten, 'system/lib/dlmalloc.c', /Version (\d+\.\d+\.\d+)/),
    purl: (version) => `pkg:generic/dlmalloc@${version}`,
  },
  {
    name: 'pbf',
    license: 'BSD-3-Clause',
    from: /^.*\/node_modules\/pbf(?=\/)/,
    version: (checkout) => textOf(checkout, 'node_modules/pbf/package.json', /"version": "(.+)"/),
    purl: (version) => `pkg:npm/pbf@${version}`,
  },
];

/** Files that a build reads, and that leave nothing of theirs in its result. */
const leavesNothing = [
  /\/clang\/\d+\/include\//, // names of instructions and limits of types
  /\/sysroot\/include\/wasm\//,
];

/** A project that cmake/Dependencies.cmake pins by its commit. */
function ofGitHub(repository) {
  const pin = new RegExp(`https://github\\.com/${repository} ([0-9a-f]{40})`, 'i');
  return {
    repository,
    version: (checkout) => textOf(checkout, 'cmake/Dependencies.cmake', pin),
    purl: (version) => `pkg:github/${repository.toLowerCase()}@${version}`,
  };
}

function textOf(folder, file, pattern) {
  const found = pattern.exec(readFileSync(join(folder, file), 'utf8'));
  return found?.[1] ?? found?.[0] ?? fail(`${join(folder, file)} has no ${pattern}.`);
}

/** The licence of a text, by its own words. */
function licenceIn(text) {
  if (/Permission is hereby granted, free of charge/.test(text)) return 'MIT';
  if (!/Redistribution and use in source and binary forms/.test(text)) return 'of other words';
  return /Neither the name/.test(text) ? 'BSD-3-Clause' : 'BSD-2-Clause';
}

// --- what a build contains -----------------------------------------------------------------------

/** The target that links a module -> the targets whose objects are in it. */
const core = ['wgemm', 'wgemm_xnnpack', 'wgemm_embind'];
const targets = {
  wgemm_wasm: core,
  wgemm_models_wasm: [...core, 'wgemm_nn', 'wgemm_models_wasm'],
};

/** Paths of libraries and sources that a wasm file of a checkout contains. */
function pathsIn(checkout, name) {
  const [, preset, models] = /^wgemm(.*?)(-models)?$/.exec(name);
  const build = join(checkout, 'build', `wasm${preset}`);
  const linked = models ? 'wgemm_models_wasm' : 'wgemm_wasm';
  const map = join(build, `${linked}.map`);
  if (!existsSync(map)) fail(`There is no link map ${map}: run \`npm run build\` there.`);
  const archives = readFileSync(map, 'utf8').matchAll(/(\/[^():]*\.a)\([^)]*\):/g);
  const sources = (query('ninja', ['-C', build, '-t', 'deps'], { maxBuffer: 2 ** 28 }) ?? '')
    .split('\n\n')
    .filter((part) => targets[linked].some((target) => part.includes(`CMakeFiles/${target}.dir/`)))
    .flatMap((part) => Array.from(part.matchAll(/^ {4}(.*)$/gm), ([, path]) => path));
  if (sources.length === 0) fail(`Ninja knows no sources of ${build}: build it by this Ninja.`);
  return new Set([...Array.from(archives, ([, path]) => path), ...sources]);
}

function componentOf(path, checkout, where) {
  const isOwn =
    path.startsWith(`${checkout}/`) &&
    !/\/(_deps|node_modules)\//.test(path.slice(checkout.length));
  if (isOwn || !path.startsWith('/') || leavesNothing.some((pattern) => pattern.test(path)))
    return undefined;
  return (
    components.find(({ from }) => from.test(path)) ??
    fail(`${where} contains ${path}, which belongs to no project in scripts/components.mjs.`)
  );
}

/**
 * Finds the components in dist/ of a checkout, which `npm run build` made there.
 *
 * @returns Map: component -> { files: Set of names in dist/, folder: where its sources are }
 */
export function findComponents(checkout) {
  const found = new Map();
  const add = (component, file, folder) => {
    if (!found.has(component)) found.set(component, { files: new Set(), folder });
    found.get(component).files.add(file);
  };
  const dist = join(checkout, 'dist');
  const names = readdirSync(dist);
  for (const file of names.filter((name) => name.endsWith('.wasm'))) {
    for (const path of pathsIn(checkout, basename(file, '.wasm'))) {
      const component = componentOf(path, checkout, file);
      if (component) add(component, file, component.from.exec(path)[0]);
    }
  }
  const wasm = names
    .filter((name) => name.endsWith('.wasm'))
    .map((name) => [name, readFileSync(join(dist, name)).toString('base64', 0, 300)]);
  for (const map of names.filter((name) => name.endsWith('.map'))) {
    const file = map.slice(0, -'.map'.length);
    for (const source of JSON.parse(readFileSync(join(dist, map), 'utf8')).sources) {
      // The glue of a build is in the folder in which dist/ was made.
      const isGlue = /(^|\/)wgemm-[\w-]+\.mjs$/.test(source);
      const path = isGlue ? `/${basename(source)}` : join(dist, source);
      const component = componentOf(path, checkout, file);
      if (component) add(component, file, component.from.exec(path)[0]);
    }
    const script = readFileSync(join(dist, file), 'utf8');
    for (const [name] of wasm.filter(([, start]) => script.includes(start)))
      for (const { files } of found.values()) if (files.has(name)) files.add(file);
  }
  return found;
}

// --- NOTICE --------------------------------------------------------------------------------------

/** A heading of NOTICE -> whether a file of dist/ must contain what is below it. */
const headings = [
  [/^In all binaries$/, (file) => file.endsWith('.wasm')],
  [/^In the native library only$/, () => false],
  [/^In the WebAssembly files and their glue only$/, (file) => file.endsWith('.wasm')],
  [/^In dist\/onnx\.js only$/, (file) => file === 'onnx.js'],
];

const licences = {
  'BSD 3-clause': 'BSD-3-Clause',
  MIT: 'MIT',
  'Apache 2.0 with LLVM exception': 'Apache-2.0 WITH LLVM-exception',
  'public domain (CC0)': 'CC0-1.0',
};

/** The list at the head of NOTICE, as { name, licence, heading, isIn }. */
function rowsOf(notice) {
  const rows = [];
  let heading;
  for (const line of notice.slice(0, notice.indexOf('\n---')).split('\n')) {
    heading = /^ {2}(\S.*)$/.exec(line)?.[1] ?? heading;
    const [, names, licence] = /^ {4}(\S.*?) {2,}(\S.*)$/.exec(line) ?? [];
    if (!names) continue;
    const [, isIn] =
      headings.find(([pattern]) => pattern.test(heading)) ??
      fail(`scripts/components.mjs does not know the heading '${heading}' of NOTICE.`);
    for (const name of names.replace(/ \(.*\)|, as .*/, '').split(', '))
      rows.push({ name, licence: licences[licence] ?? licence, heading, isIn });
  }
  return rows;
}

/**
 * Compares NOTICE with what the build contains, in both directions.
 *
 * @param found from findComponents()
 * @returns sentences, one for each difference
 */
export function wrongInNotice(notice, dependencies, found) {
  const wrong = [];
  const rows = rowsOf(notice);
  const isNamed = (name) => rows.some((row) => row.name === name);
  const listOf = (files) => [...files].sort().join(', ');
  for (const [{ name, license }, { files, folder }] of found) {
    if (!isNamed(name)) wrong.push(`NOTICE lacks ${name}, which is in ${listOf(files)}.`);
    const text = join(folder, 'LICENSE');
    if (!existsSync(text)) continue;
    const words = readFileSync(text, 'utf8');
    if (licenceIn(words) !== license)
      wrong.push(`${text} is ${licenceIn(words)}, and not ${license} as NOTICE says.`);
    for (const [line] of words.matchAll(/^Copyright .*\d{4}.*$|^Copyright \(c\) .*$/gm))
      if (!notice.includes(line.trim().replace(/ All rights reserved\.?$/, '')))
        wrong.push(`NOTICE lacks '${line.trim()}', which ${text} has.`);
  }
  for (const { name, licence, heading, isIn } of rows) {
    const component = components.find((one) => one.name === name);
    if (!component) {
      wrong.push(`NOTICE names ${name}, which scripts/components.mjs does not know.`);
      continue;
    }
    if (licence !== component.license)
      wrong.push(`NOTICE says that ${name} is ${licence}; it is ${component.license}.`);
    const files = [...(found.get(component)?.files ?? [])];
    const missing = allOf(found).filter((file) => isIn(file) && !files.includes(file));
    const extra = files.filter((file) => isCompared(file) && !isIn(file));
    if (missing.length > 0)
      wrong.push(`NOTICE has ${name} '${heading}', but it is not in ${listOf(missing)}.`);
    if (extra.length > 0)
      wrong.push(`NOTICE has ${name} '${heading}', but it is also in ${listOf(extra)}.`);
  }
  // The native library is built from these sources.
  const pinned = dependencies.matchAll(/https:\/\/github\.com\/([\w-]+\/[\w-]+) /g);
  for (const [, repository] of pinned) {
    const component = components.find((one) => one.repository === repository);
    if (repository !== 'google/googletest' && !isNamed(component?.name))
      wrong.push(`NOTICE lacks ${repository}, which cmake/Dependencies.cmake builds.`);
  }
  return wrong;
}

/** Scripts contain the glue, and inline.js a .wasm: the headings are about those themselves. */
const isCompared = (file) => file.endsWith('.wasm') || file === 'onnx.js';
const allOf = (found) => [
  ...new Set([...found.values()].flatMap(({ files }) => [...files].filter(isCompared))),
];

// --- SBOM ----------------------------------------------------------------------------------------

/**
 * The software bill of materials of a package, in CycloneDX 1.6.
 *
 * @param manifest its package.json
 * @param time the time of its commit, so that the same commit has the same SBOM
 * @param sha256 of the tarball
 */
export function sbomOf(found, { checkout, emscripten, manifest, time, sha256 }) {
  const self = `pkg:npm/${manifest.name}@${manifest.version}`;
  const list = [...found].map(([{ name, license, version, purl }, { files }]) => {
    const its = version(checkout, emscripten);
    return {
      type: 'library',
      'bom-ref': purl(its),
      name,
      version: its,
      licenses: [license.includes(' ') ? { expression: license } : { license: { id: license } }],
      purl: purl(its),
      evidence: {
        occurrences: [...files].sort().map((file) => ({ location: `dist/${file}` })),
      },
    };
  });
  list.sort((a, b) => (a.purl < b.purl ? -1 : 1));
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${sha256.replace(
      /^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/,
      '$1-$2-8$3-8$4-$5',
    )}`,
    version: 1,
    metadata: {
      timestamp: time,
      component: {
        type: 'library',
        'bom-ref': self,
        name: manifest.name,
        version: manifest.version,
        description: manifest.description,
        hashes: [{ alg: 'SHA-256', content: sha256 }],
        licenses: [{ license: { id: manifest.license } }],
        purl: self,
        externalReferences: [
          { type: 'website', url: manifest.homepage },
          { type: 'vcs', url: manifest.repository.url },
        ],
      },
    },
    components: list,
    dependencies: [
      { ref: self, dependsOn: list.map((one) => one['bom-ref']) },
      ...list.map((one) => ({ ref: one['bom-ref'] })),
    ],
  };
}
