// Changes of VitePress that make a page respond sooner after its load, above all on a phone.
import { join } from 'node:path';

/**
 * Name -> the media in which the theme shows it. Components that show headings are not here: Vue must
 * hydrate them before the page has found its headings.
 */
const large = {
  VPNav: 'all',
  VPSidebar: '(min-width: 960px)',
  VPDocFooter: 'all',
};
const nameOf = (path) => /\/(\w+)\.vue$/.exec(path)?.[1];
const users = /\/theme-default\/(Layout|components\/VPDoc)\.vue$/;
const helper = JSON.stringify(join(import.meta.dirname, 'theme', 'lazy.js'));
const mark = '\0lazy:';

/** Makes the large components of the theme lazy, where the theme imports them. */
export const lazyComponents = () => ({
  name: 'lazy components',
  enforce: 'pre',
  buildEnd(error) {
    if (error) return;
    const found = [...this.getModuleIds()].filter((id) => id.startsWith(mark)).length;
    const all = Object.keys(large).length;
    if (found !== all) this.error(`${found} of ${all} components are lazy: the theme has changed`);
  },
  async resolveId(source, importer, options) {
    if (!(nameOf(source) in large) || !users.test(importer)) return null;
    const { id } = await this.resolve(source, importer, { ...options, skipSelf: true });
    return mark + id;
  },
  load(id) {
    if (!id.startsWith(mark)) return null;
    const path = id.slice(mark.length);
    return `
      import component from ${JSON.stringify(path)};
      import { lazy } from ${helper};
      export default lazy(component, '${large[nameOf(path)]}');`;
  },
});

const assignments = /document\.documentElement\.(lang|dir) = (\w+\.value);/g;

/**
 * VitePress assigns the language and the direction that the page has. A browser then computes the
 * styles of all elements again.
 */
export const assignOnlyChanges = () => ({
  name: 'assign only changes',
  transform(code, id) {
    if (!id.endsWith('/vitepress/dist/client/app/index.js')) return null;
    const changed = code.replace(assignments, 'if (document.documentElement.$1 !== $2) $&');
    if (changed === code) this.error('app/index.js assigns no language: VitePress has changed');
    return { code: changed, map: null };
  },
});
