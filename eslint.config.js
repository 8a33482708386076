import js from '@eslint/js';
import globals from 'globals';
import typescript from 'typescript-eslint';

export default typescript.config(
  { ignores: ['build/', 'dist/', 'coverage/', 'docs/reference/', 'docs/.vitepress/.temp/'] },
  js.configs.recommended,
  {
    files: ['js/**/*.ts', 'tests/**/*.ts'],
    extends: [typescript.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
  },
  {
    files: ['**/*.{js,mjs,ts}'],
    languageOptions: { globals: globals.nodeBuiltin },
  },
  {
    files: ['docs/.vitepress/theme/**/*.js', 'tests/site/*.mjs'],
    languageOptions: { globals: globals.browser },
  },
  {
    files: ['tests/browser/page/*.js'],
    languageOptions: { globals: { ...globals.browser, ...globals.worker } },
  },
);
