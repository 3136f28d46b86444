/** The process: PORT, HOST and DRAIN_DELAY come from the environment. */

import app from './app.js';

await app.run();
