import { h } from 'vue';
import DefaultTheme from 'vitepress/theme-without-fonts';
import BenchOverview from './components/BenchOverview.vue';
import BenchRun from './components/BenchRun.vue';
import HomeFigures from './components/HomeFigures.vue';
import HomeLive from './components/HomeLive.vue';
import LabFilter from './components/LabFilter.vue';
import SiteFooter from './components/SiteFooter.vue';
import './custom.css';
import './home.css';

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'doc-after': () => h(SiteFooter) }),
  enhanceApp({ app }) {
    app.component('BenchOverview', BenchOverview);
    app.component('BenchRun', BenchRun);
    app.component('HomeFigures', HomeFigures);
    app.component('HomeLive', HomeLive);
    app.component('LabFilter', LabFilter);
    // The address of the icon is relative, and the address of the page changes without a load.
    if (typeof document !== 'undefined')
      for (const icon of document.querySelectorAll('link[rel=icon]'))
        icon.setAttribute('href', icon.href);
  },
};
