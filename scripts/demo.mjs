// Builds the demo of examples/demo/ with the package as a user installs it: from the tarball.
//   npm run demo              builds it into build/demo/ and serves it
//     --port 8080             the port; without it, a free one
//     --no-isolation          without the headers that threads need
//     --build                 only builds it
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { startServer } from '../tests/browser/server.mjs';
import { demoHeaders } from '../tests/demo/headers.mjs';
import { packInto } from '../tests/package/packed.mjs';
import { fail, main, root, run } from './run.mjs';
import { npmFolders, setUp } from './setup.mjs';

const folder = join(root, npmFolders.demo);

/** Installs the tarball of the package for the demo, as a user does. */
async function installPackage() {
  const { file } = await packInto(join(root, 'build', 'demo-package'));
  await run('npm', ['install', '--no-save', '--offline', '--no-audit', '--no-fund', file], {
    cwd: folder,
    quiet: true,
    otherwise: 'npm cannot install the tarball: see above.',
  });
}

/**
 * Builds the demo. dist/ must be there.
 *
 * @param out the folder to write
 * @param site where the pages of the guide are: an address, or a path from the demo
 * @param short whether its language model learns for a fifth of the time
 */
export async function buildDemo({ out, site, short = false }) {
  await setUp('demo');
  await installPackage();
  await run('node', [join(folder, 'node_modules', 'vite', 'bin', 'vite.js'), 'build'], {
    cwd: folder,
    quiet: true,
    env: { DEMO_OUT: out, DEMO_SITE: site, ...(short ? { DEMO_SHORT: '1' } : {}) },
    otherwise: 'Vite cannot build the demo: correct what it names above.',
  });
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        port: { type: 'string', default: '0' },
        'no-isolation': { type: 'boolean', default: false },
        build: { type: 'boolean', default: false },
      },
    }).values;
  } catch ({ message }) {
    fail(`demo: ${message}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    const options = readArguments();
    const { homepage } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const out = join(root, 'build', 'demo');
    await buildDemo({ out, site: homepage.replace(/\/$/, '') });
    console.log(`demo: built in ${relative('', out)}`);
    if (options.build) return;
    const server = await startServer({
      folders: { '/': out },
      headers: demoHeaders({ isIsolated: !options['no-isolation'] }),
      port: Number(options.port),
    });
    console.log(`demo: ${server.url('/')} (Ctrl+C ends it)`);
  });
}
