/**
 * An instance that is restarted behind a gateway. Arguments: its port, the delay of its drain, and a file to which it
 * adds the id of each POST that it takes.
 */

import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { Postern, publicFacing } from '../../dist/index.js';

const [port, delay] = process.argv.slice(2, 4).map(Number);
const file = process.argv[4];
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
await app.run({ port, host: '127.0.0.1', scope: 'public', delay });
process.send(app.router.routes);
