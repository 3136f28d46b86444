/**
 * A service of the mesh in the picture of the dashboard. Arguments: its name and the services that it calls. The
 * message `fail` makes it fail, the message `recover` ends that.
 */

import { setTimeout } from 'node:timers/promises';
import { Postern, ServiceUnavailable } from '../../dist/index.js';

const [, , name = '', ...called] = process.argv;
const app = new Postern(name, { logger: false });
let fails = false;
process.on('message', (message) => (fails = message === 'fail')).once('disconnect', () => process.exit());

app.health.check('database', () => !fails);
app.use(async (_ctx, next) => {
  await setTimeout(2);
  return next();
});
app.get('/work', async (ctx) => {
  if (fails) throw new ServiceUnavailable('The database is down.');
  await setTimeout(Math.random() * 3 * name.length);
  // A service can do without the reply of another one.
  await Promise.allSettled(called.map((each) => ctx.service(each).get('/work')));
  return { name };
});
const { port } = await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.(port);
