/**
 * A service with an event stream, in a process of its own: `node event-service.mjs '{"port":8000}'`. With `calls`, the
 * name of another service, and its `url`, each piece of its work has a part there.
 */

import { Postern, events } from '../../dist/index.js';

const { port, name = 'ticker', calls, url, ...options } = JSON.parse(process.argv[2] ?? '{}');
const settings = { SERVICE_CONNECTIONS: calls ? [`${calls}=${url}`] : [] };
const app = new Postern(name, { logger: false, settings });

/** The numbers after the one that the client has seen, for ever; each process goes on where another has stopped. */
async function* numbers(after) {
  for (let id = after + 1; ; id += 1) {
    yield { id, event: 'tick', data: { id, pid: process.pid } };
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

app.get('/', () => new Response('<!doctype html><title>page</title><link rel="icon" href="data:,">', { headers: { 'content-type': 'text/html' } }));
app.get('/events', (ctx) => events(numbers(Number(ctx.headers['last-event-id'] ?? 0)), { retry: 20 }));
// A stream that says nothing: only the end of the application ends it.
app.get('/silent', () => events(new ReadableStream({}), { retry: 20 }));
app.get('/work', async (ctx) => {
  const below = calls ? (await ctx.service(calls).get('/work')).body : [];
  return [name, ...below];
});
await app.run({ port, host: '127.0.0.1', delay: 200, timeout: 20_000, ...options });
process.send?.('listening');
