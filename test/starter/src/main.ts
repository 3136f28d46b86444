/** The process. PORT, HOST, LOG_LEVEL and DRAIN_DELAY come from the environment. */

import app from './app.ts';

await app.run();
