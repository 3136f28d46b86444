/** A CONNECT request that is never answered is a line of the access log like any other. */

import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { reply } from 'postern';
import { createApp, createRecorder, serve } from '../support/serve.js';

test.for([
  ['its client disconnects while an earlier request is pending', '/pending', [499, 499]],
  ['an earlier reply ends the connection', '/closing', [200, 499]],
] as const)('CONNECT, when %s', async ([, path, statuses]) => {
  const logger = createRecorder();
  const app = createApp({ logger, accessLog: true });
  app.get('/pending', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)));
  app.get('/closing', () => reply('closing', { headers: { connection: 'close' } }));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\nCONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n`, () =>
      setTimeout(() => socket.end(), 20),
    );
  });
  socket.resume();
  const lines = (): unknown[] => logger.entries.filter(({ message }) => message === 'request')
    .map(({ object }) => object['status']).sort();
  await expect.poll(lines).toEqual(statuses);
});
