/** A service with an event stream, in a process of its own: `node event-service.mjs '{"port":8000}'`. */

import { Postern, events } from '../../dist/index.js';

const { port, ...options } = JSON.parse(process.argv[2] ?? '{}');
const app = new Postern('ticker', { logger: false });

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
await app.run({ port, host: '127.0.0.1', delay: 200, timeout: 20_000, ...options });
process.send?.('listening');
