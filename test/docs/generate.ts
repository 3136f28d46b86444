/** Writes the generated pages, from `dist` as it was built last: `npm run docs`. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generatePages, writePagesInOneFile } from '../support/generated-pages.js';
import { ROOT } from '../support/markdown.js';

for (const [page, text] of Object.entries(generatePages())) writeFileSync(join(ROOT, page), text);
writePagesInOneFile();
