/**
 * The generated pages are as the declarations and the other pages say.
 *
 * @module-tag package
 */

import { expect, test } from 'vitest';
import { generatePages } from '../support/generated-pages.js';
import { readPage } from '../support/markdown.js';

test.for(Object.entries(generatePages()))('%s is what `npm run docs` writes', ([page, text]) => {
  expect(readPage(page) === text, `${page} is out of date; run npm run docs and commit it`).toBe(true);
});
