// The search of the site: MiniSearch over the sections of the pages. `keywords` in the frontmatter
// of a page is a text: words that users know and the page does not have, or has only in passing.

/**
 * Pages whose tables would bury the other pages in the results of a search. Pages of the lab have a
 * filter of their own.
 */
const notSearched = /^(lab|benchmarks)\/(?!index\.md)/;

export const miniSearch = {
  searchOptions: {
    fuzzy: 0.2,
    prefix: true,
    boost: { title: 4, text: 2, titles: 1 },
    // Pages that answer a user's question come before pages that record the project's work. The
    // page as a whole, without the name of a section, stands for its keywords.
    boostDocument(id) {
      const [, folder] = /^\/(\w+)\//.exec(id) ?? [];
      const weight = { operators: 3, guide: 2, recipes: 1.5 }[folder] ?? 1;
      return weight * (id.includes('#') ? 1 : 2);
    },
  },
};

/** The HTML of a page for the index, with a section for its keywords. */
export async function render(source, env, md) {
  const html = await md.renderAsync(source, env);
  const { frontmatter = {}, relativePath } = env;
  if (notSearched.test(relativePath) || frontmatter.search === false) return '';
  const { keywords } = frontmatter;
  if (keywords === undefined) return html;
  const title = /<h1[^>]*>(.*?)<a /.exec(html)?.[1] ?? relativePath;
  const words = md.utils.escapeHtml(keywords);
  return `<h1>${title}<a href="#">#</a></h1><p>${words}</p>\n${html}`;
}
