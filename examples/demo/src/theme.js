// Chooses light or dark before the page is painted, by the preference that the switch of the site
// stores. build/page.mjs loads it as a script of its own, since modules run too late.
(() => {
  const key = 'vitepress-theme-appearance';
  const system = matchMedia('(prefers-color-scheme: dark)');
  const { classList } = document.documentElement;
  let unkept = 'auto';
  const preference = () => {
    try {
      return localStorage.getItem(key);
    } catch {
      return unkept; // the browser keeps nothing for this page
    }
  };
  const show = () => {
    const stored = preference();
    const isDark = stored === 'dark' || (stored !== 'light' && system.matches);
    classList.toggle('dark', isDark);
    document.querySelector('#theme')?.setAttribute('aria-checked', String(isDark));
    document.dispatchEvent(new Event('theme')); // what is drawn is drawn again
  };
  const change = () => {
    const isDark = !classList.contains('dark');
    // As on the site: 'auto' follows the system again.
    unkept = isDark === system.matches ? 'auto' : isDark ? 'dark' : 'light';
    try {
      localStorage.setItem(key, unkept);
    } catch {
      // It holds until the visitor leaves.
    }
    show();
  };
  show();
  system.addEventListener('change', show);
  addEventListener('storage', show);
  document.addEventListener('DOMContentLoaded', () => {
    show();
    document.querySelector('#theme').addEventListener('click', change);
  });
})();
