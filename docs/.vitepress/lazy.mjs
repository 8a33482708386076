// Makes the large components of VitePress's theme lazy, where the theme imports them.
import { join } from 'node:path';

const names = ['VPNav', 'VPLocalNav', 'VPSidebar', 'VPDocAside', 'VPDocFooter'];
const large = new RegExp(`/(${names.join('|')})\\.vue$`);
const users = /\/theme-default\/(Layout|components\/VPDoc)\.vue$/;
const helper = JSON.stringify(join(import.meta.dirname, 'theme', 'lazy.js'));
const mark = '\0lazy:';

export const lazyComponents = () => ({
  name: 'lazy components',
  enforce: 'pre',
  buildEnd(error) {
    if (error) return;
    const found = [...this.getModuleIds()].filter((id) => id.startsWith(mark)).length;
    if (found !== names.length)
      this.error(`${found} of ${names.length} components are lazy: the theme has other names`);
  },
  async resolveId(source, importer, options) {
    if (!large.test(source) || !users.test(importer)) return null;
    const { id } = await this.resolve(source, importer, { ...options, skipSelf: true });
    return mark + id;
  },
  load(id) {
    if (!id.startsWith(mark)) return null;
    return `
      import component from ${JSON.stringify(id.slice(mark.length))};
      import { lazy } from ${helper};
      export default lazy(component);`;
  },
});
