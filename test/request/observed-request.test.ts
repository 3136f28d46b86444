/**
 * Whoever looks at requests from outside, such as an agent for monitoring that listens on `app.server`, is told when
 * each of them has ended and closed, whatever its handler did with the body.
 */

import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { HttpError, type Postern } from 'postern';
import { createApp, serve } from '../support/serve.js';

const BODY = '{"name":"postern"}';

const REQUESTS: Record<string, { method: string; path: string; body?: string }> = {
  'without a body': { method: 'GET', path: '/sync' },
  'without a body, answered later': { method: 'GET', path: '/later' },
  'without a body, which its handler asks for': { method: 'POST', path: '/text' },
  'that is refused': { method: 'GET', path: '/nowhere' },
  'that fails': { method: 'GET', path: '/fail' },
  'with a body that is read': { method: 'POST', path: '/json', body: BODY },
  'with a body that is read as text': { method: 'POST', path: '/text', body: BODY },
  'with a body that nobody reads': { method: 'POST', path: '/sync', body: BODY },
  'with a body, answered with a stream': { method: 'POST', path: '/stream', body: BODY },
};

function createTarget(): Postern {
  const app = createApp();
  app.get('/sync', () => 'now').post('/sync', () => 'now');
  app.get('/later', () => sleep(5).then(() => 'later'));
  app.get('/fail', () => Promise.reject(new HttpError(410)));
  app.post('/json', (ctx) => ctx.json() as Promise<object>).post('/text', (ctx) => ctx.text());
  app.post('/stream', async function* (ctx) {
    yield await ctx.text();
  });
  return app;
}

/** Sends one request, on a connection that stays open: that it closes must not be what ends the request. */
async function send(port: number, { method, path, body }: (typeof REQUESTS)[string]): Promise<void> {
  const headers = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length };
  const outgoing = request({ port, host: '127.0.0.1', method, path, headers: { ...headers, connection: 'keep-alive' } });
  outgoing.end(body);
  const [reply] = (await once(outgoing, 'response')) as [IncomingMessage];
  await once(reply.resume(), 'end');
}

/** Where an observer gets hold of a request: before Postern has it, or after. */
const PLACES = ['prependListener', 'on'] as const;

test.each(PLACES.flatMap((place) => Object.entries(REQUESTS).map(([what, sent]) => [what, place, sent] as const)))(
  'a request %s ends and closes for who listens, by server.%s',
  async (_what, place, sent) => {
    const app = createTarget();
    const events: string[] = [];
    app.server[place]('request', (req: IncomingMessage) => {
      req.on('end', () => events.push('end')).on('close', () => events.push('close'));
    });
    const { port } = await serve(app);
    await send(port, sent);
    await expect.poll(() => events).toEqual(['end', 'close']);
  },
);

test.each(Object.entries(REQUESTS))('a request %s is finished for stream.finished()', async (_what, sent) => {
  const app = createTarget();
  const seen: Promise<void>[] = [];
  app.server.on('request', (req: IncomingMessage) => seen.push(finished(req)));
  const { port } = await serve(app);
  await send(port, sent);
  expect(await Promise.all(seen)).toHaveLength(1);
});
