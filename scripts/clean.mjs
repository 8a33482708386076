// Removes what was built and fetched in this clone. With --cache, also what set-up fetched into the
// cache that all clones of this user share. System packages stay. Needs no npm package.
import { lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cache, fail, main, root, withLock } from './run.mjs';
import { cached, npmFolders } from './setup.mjs';

const installed = ['', ...Object.values(npmFolders)].map((folder) => join(folder, 'node_modules'));
const written = [join('docs', 'reference'), join('docs', '.vitepress', '.temp')]; // by the site
const inClone = ['build', 'dist', 'coverage', ...written, ...installed];

// Only files that the scripts put into the cache, since WGEMM_CACHE may name a folder that holds
// more. apt's lists remain there after a set-up that was interrupted.
const isOurs = new RegExp(`^(${cached.join('|')})-[\\w.-]+$|^(apt|ccache|npm-packages)$`);

const isThere = (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
const inCache = () =>
  isThere(cache)
    ? readdirSync(cache)
        .filter((name) => isOurs.test(name))
        .map((name) => join(cache, name))
    : [];

function sizeOf(path) {
  const info = lstatSync(path, { throwIfNoEntry: false });
  if (!info) return 0;
  if (!info.isDirectory()) return info.blocks === undefined ? info.size : info.blocks * 512;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

const inMB = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

function remove(paths) {
  for (const path of paths) {
    const size = sizeOf(path);
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    console.log(`clean: removed ${path} (${inMB(size)})`);
  }
}

await main(async () => {
  const unknown = process.argv.slice(2).find((word) => word !== '--cache');
  if (unknown !== undefined) fail(`clean: ${unknown} is not known; it takes --cache.`);
  const paths = inClone.map((name) => join(root, name)).filter(isThere);
  remove(paths);
  if (inCache().length === 0) {
    if (paths.length === 0) console.log('clean: nothing to remove');
  } else if (process.argv.includes('--cache')) {
    await withLock(() => remove(inCache())); // while no set-up of another clone is at work
    if (readdirSync(cache).length === 0) rmdirSync(cache);
  } else {
    const size = inMB(inCache().reduce((sum, path) => sum + sizeOf(path), 0));
    console.log(
      `clean: kept ${cache} (${size}), which all clones of this user share; ` +
        '`npm run clean -- --cache` removes it too',
    );
  }
});
