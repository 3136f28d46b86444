/** A service of a mesh under load. Arguments: its name, its port, the next service's name or nothing. */

import { Postern } from '../../dist/index.js';

const [, , name, port, next] = process.argv;
const app = new Postern(name, { logger: false });

app.get('/work/:retry', async (ctx) => {
  if (next === undefined) return { pid: process.pid };
  return (await ctx.service(next).get(`/work/${ctx.params.retry}`, { retry: Number(ctx.params.retry) })).body;
});
const { url } = await app.listen({ host: '127.0.0.1', port: Number(port) });
process.send?.({ url });
