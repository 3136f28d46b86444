/**
 * An instance that is restarted behind a gateway: `node restarted-service.mjs '{"port":8000,"file":"taken"}'`. It adds
 * the id of each POST that it takes to the file.
 */

import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { Postern, publicFacing } from '../../dist/index.js';

const { file, ...options } = JSON.parse(process.argv[2]);
const app = new Postern('restarted', { logger: false });
app.get('/x', publicFacing(async () => {
  await wait(5);
  return { pid: process.pid };
}));
app.post('/x', publicFacing(async (ctx) => {
  await ctx.text();
  appendFileSync(file, `${ctx.query.get('id')}\n`);
  await wait(5);
  return { pid: process.pid };
}));
await app.run({ host: '127.0.0.1', ...options });
process.send(app.router.routes);
