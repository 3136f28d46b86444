/** A service in a process of its own, for tests of its end: `node drained-service.mjs '{"delay":0}'`. */

import { readSync } from 'node:fs';
import { Postern } from '../../dist/index.js';

const { name = 'drained', port = 0, ...options } = JSON.parse(process.argv[2] ?? '{}');
const app = new Postern(name, { logger: false });
let hooks = 0;
app.get('/', () => ({ pid: process.pid }));
app.get('/slow/:ms', (ctx) => new Promise((resolve) => {
  process.send?.('slow');
  setTimeout(resolve, Number(ctx.params.ms), 'done');
}));
app.get('/close/:ms', (ctx) => new Promise((resolve) => {
  void app.close();
  process.send?.('slow');
  setTimeout(resolve, Number(ctx.params.ms), 'done');
}));
app.get('/block', () => {
  void app.close();
  process.send?.('blocked');
  readSync(0, Buffer.alloc(1)); // The event loop stands still until somebody writes.
  return 'done';
});
app.get('/track/:ms/:more', async ({ params }) => {
  process.send?.('slow');
  await new Promise((resolve) => setTimeout(resolve, Number(params.ms)));
  app.track(new Promise((resolve) => setTimeout(resolve, Number(params.more))).then(() => process.send?.('tracked')));
  return 'done';
});
app.get('/big', () => 'x'.repeat(20_000_000));
app.get('/never', () => {
  process.send?.('never');
  return new Promise(() => {});
});
app.onClose(() => process.send?.(`hook ${(hooks += 1)}`));
process.on('SIGTERM', () => process.send?.('SIGTERM'));
const listening = await app.run({ port, host: '127.0.0.1', ...options });
process.send?.(listening.port);
