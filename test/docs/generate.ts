/** Writes the generated pages, from `dist` as it was built last: `npm run docs`. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generatePages, writePagesInOneFile } from '../support/generated-pages.js';
import { ROOT } from '../support/markdown.js';

for (const [page, text] of Object.entries(generatePages())) {
  mkdirSync(dirname(join(ROOT, page)), { recursive: true });
  writeFileSync(join(ROOT, page), text);
}
writePagesInOneFile();
