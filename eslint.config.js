import js from '@eslint/js';
import globals from 'globals';
import typescript from 'typescript-eslint';

export default typescript.config(
  { ignores: ['build/', 'dist/', 'coverage/', 'docs/reference/', 'docs/.vitepress/.temp/'] },
  js.configs.recommended,
  {
    files: ['js/**/*.ts', 'tests/**/*.ts', 'examples/**/*.ts'],
    extends: [typescript.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
  },
  {
    // As scripts/lint-length.mjs for C++. js/onnx has longer ones.
    files: ['js/**/*.ts'],
    ignores: ['js/onnx/**'],
    rules: {
      'max-lines': ['error', 500],
      'max-lines-per-function': ['error', { max: 60, skipComments: true, skipBlankLines: true }],
      'max-params': ['error', 9],
    },
  },
  {
    // The examples that the demo imports are JavaScript.
    files: ['examples/demo/**/*.ts'],
    rules: Object.fromEntries(
      ['argument', 'assignment', 'call', 'member-access', 'return'].map((what) => [
        `@typescript-eslint/no-unsafe-${what}`,
        'off',
      ]),
    ),
  },
  {
    files: ['**/*.{js,mjs,ts}'],
    languageOptions: { globals: globals.nodeBuiltin },
  },
  {
    files: [
      'docs/.vitepress/theme/**/*.js',
      'tests/site/*.mjs',
      'tests/demo/*.mjs',
      'tests/browser/tabs.mjs',
    ],
    languageOptions: { globals: globals.browser },
  },
  {
    files: [
      'tests/browser/page/*.js',
      'examples/demo/src/**/*.{js,ts}',
      'docs/.vitepress/live/*.js',
    ],
    languageOptions: { globals: { ...globals.browser, ...globals.worker } },
  },
);
