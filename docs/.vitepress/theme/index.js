import DefaultTheme from 'vitepress/theme-without-fonts';
import BenchOverview from './components/BenchOverview.vue';
import BenchRun from './components/BenchRun.vue';
import HomeSpeed from './components/HomeSpeed.vue';
import LabFilter from './components/LabFilter.vue';
import './custom.css';

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('BenchOverview', BenchOverview);
    app.component('BenchRun', BenchRun);
    app.component('HomeSpeed', HomeSpeed);
    app.component('LabFilter', LabFilter);
    // The address of the icon is relative, and the address of the page changes without a load.
    if (typeof document !== 'undefined')
      for (const icon of document.querySelectorAll('link[rel=icon]'))
        icon.setAttribute('href', icon.href);
  },
};
