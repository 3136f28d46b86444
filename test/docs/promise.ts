/** Saves what the next release promises: `npm run promise`, once the changelog says what broke. */

import { writeFileSync } from 'node:fs';
import { findPromises, SAVED } from '../support/promises.js';

writeFileSync(SAVED, `${JSON.stringify(findPromises(), null, 1)}\n`);
