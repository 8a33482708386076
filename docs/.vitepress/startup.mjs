// Changes of VitePress that make a page respond sooner after its load, above all on a phone.
import { join } from 'node:path';

/**
 * Name of a component -> the media in which the theme shows the component. Components that show
 * headings are not here: Vue must hydrate them before the page has found its headings.
 */
const mediaOf = {
  VPNav: 'all',
  VPSidebar: '(min-width: 960px)',
  VPDocFooter: 'all',
};
const nameOf = (path) => /\/(\w+)\.vue$/.exec(path)?.[1];
const importers = /\/theme-default\/(Layout|components\/VPDoc)\.vue$/;
const lazyFile = JSON.stringify(join(import.meta.dirname, 'theme', 'lazy.js'));
const mark = '\0lazy:';

/** Makes the large components of the theme lazy, where the theme imports them. */
export const lazyComponents = () => ({
  name: 'lazy components',
  enforce: 'pre',
  apply: 'build',
  buildEnd(error) {
    if (error) return;
    const found = [...this.getModuleIds()].filter((id) => id.startsWith(mark)).length;
    const all = Object.keys(mediaOf).length;
    if (found !== all)
      this.error(`${found} of ${all} components are lazy: correct the names in startup.mjs`);
  },
  async resolveId(source, importer, options) {
    if (!(nameOf(source) in mediaOf) || !importers.test(importer)) return null;
    const { id } = await this.resolve(source, importer, { ...options, skipSelf: true });
    return mark + id;
  },
  load(id) {
    if (!id.startsWith(mark)) return null;
    const path = id.slice(mark.length);
    return `
      import component from ${JSON.stringify(path)};
      import { lazy } from ${lazyFile};
      export default lazy(component, '${mediaOf[nameOf(path)]}');`;
  },
});

const assignments = /document\.documentElement\.(lang|dir) = (\w+\.value);/g;

/**
 * Assigns the language and the direction of the page only if they change. VitePress always assigns
 * them, and a browser then computes the styles of all elements again.
 */
export const assignOnlyChanges = () => ({
  name: 'assign only changes',
  apply: 'build',
  transform(code, id) {
    if (!id.endsWith('/vitepress/dist/client/app/index.js')) return null;
    const changed = code.replace(assignments, 'if (document.documentElement.$1 !== $2) $&');
    if (changed === code) this.error('app/index.js assigns no language: remove this plugin');
    return { code: changed, map: null };
  },
});
