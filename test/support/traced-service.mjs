/**
 * A service under OpenTelemetry, in a process of its own. Arguments: its name, its route, the next service's name and
 * path.
 */

import { Postern } from '../../dist/index.js';

const [, , name, route, next, target] = process.argv;
const app = new Postern(name, { logger: false });

app.get(route, async (ctx) => {
  // Work between the request and its call, in the turn of whoever else arrived.
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 5));
  return next === undefined ? { id: ctx.params.id } : (await ctx.service(next).get(`${target}/${ctx.params.id}`)).body;
});
const { url } = await app.listen({ host: '127.0.0.1', port: 0 });
process.send({ url });
