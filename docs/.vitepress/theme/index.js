import { h, markRaw, onMounted } from 'vue';
import DefaultTheme from 'vitepress/theme-without-fonts';
import BenchChart from './components/BenchChart.vue';
import BenchLead from './components/BenchLead.vue';
import BenchRatios from './components/BenchRatios.vue';
import BenchRun from './components/BenchRun.vue';
import BenchStart from './components/BenchStart.vue';
import HomeFigures from './components/HomeFigures.vue';
import HomeLive from './components/HomeLive.vue';
import LabFilter from './components/LabFilter.vue';
import SiteFooter from './components/SiteFooter.vue';
import './custom.css';
import './home.css';

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'doc-after': () => h(SiteFooter) }),
  setup() {
    // The demo has no search of its own: its link leads here, with ?search.
    onMounted(() => {
      const open = () => document.querySelector('.VPNavBarSearchButton')?.click();
      if (location.search === '?search') setTimeout(open);
    });
  },
  enhanceApp({ app, siteData }) {
    markRaw(siteData.value.themeConfig.sidebar); // otherwise Vue watches every page in it
    app.component('BenchChart', BenchChart);
    app.component('BenchLead', BenchLead);
    app.component('BenchRatios', BenchRatios);
    app.component('BenchRun', BenchRun);
    app.component('BenchStart', BenchStart);
    app.component('HomeFigures', HomeFigures);
    app.component('HomeLive', HomeLive);
    app.component('LabFilter', LabFilter);
    // The address of the icon is relative, and the address of the page changes without a load.
    if (typeof document !== 'undefined')
      for (const icon of document.querySelectorAll('link[rel=icon]'))
        icon.setAttribute('href', icon.href);
  },
};
