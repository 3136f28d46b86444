/**
 * A service in a process of its own: calls the next one of a chain, the last one fails. Arguments: its name, the next
 * one's.
 */

import { ApiError, defineErrorCodes, Postern } from '../../dist/index.js';

const [, , name, next] = process.argv;
const Codes = defineErrorCodes({ too_slow: 10002 });
const app = new Postern(name);

app.get('/work', async (ctx) => {
  ctx.log.info({}, 'working');
  if (next !== undefined) return (await ctx.service(next).get('/work')).body;
  throw new ApiError('Too slow!', { statusCode: 408, errorCode: Codes.too_slow });
});
const { url } = await app.run({ host: '127.0.0.1', port: 0 });
process.send(url);
