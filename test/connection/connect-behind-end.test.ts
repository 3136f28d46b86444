/** CONNECT behind a request after which nothing is parsed any more: that the client leaves is noticed all the same. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { createApp, serve } from '../support/serve.js';

test('a client that resets the connection behind a large body and CONNECT ends its streams', async () => {
  let open = 0;
  const app = createApp({ requestTimeout: 800, headersTimeout: 400 });
  const quiet = async function* ({ signal }: { readonly signal: AbortSignal }): AsyncGenerator<string> {
    open += 1;
    yield 'begun';
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    open -= 1;
  };
  app.get('/', quiet).post('/', quiet);
  const { port } = new URL((await serve(app)).url);
  const client = connect(Number(port), '127.0.0.1').on('error', () => undefined).resume();
  await once(client, 'connect');
  const head = (line: string, length: number): string =>
    `${line} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`;
  client.write(head('GET /', 0) + head('POST /', 114_949) + head('CONNECT a:1', 80_000));
  await expect.poll(() => open).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  client.resetAndDestroy();
  await expect.poll(() => open).toBe(0);
});
