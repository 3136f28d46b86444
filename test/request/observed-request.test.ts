/**
 * Whoever looks at requests from outside, such as an agent for monitoring that listens on `app.server`, is told when
 * each of them has ended and closed, whatever its handler did with the body.
 */

import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
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
  const outgoing = request({
    port,
    host: '127.0.0.1',
    method,
    path,
    headers: { ...headers, connection: 'keep-alive' },
  });
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

/** What is heard of a request and its response, from the start and from the reply's `finish` on. */
function listen(server: Server): string[] {
  const heard: string[] = [];
  server.prependListener('request', (req: IncomingMessage, res: ServerResponse) => {
    for (const name of ['end', 'close']) req.on(name, () => heard.push(`request ${name}`));
    for (const name of ['finish', 'close']) res.on(name, () => heard.push(`response ${name}`));
    res.on('finish', () => req.on('end', () => heard.push('late end')).on('close', () => heard.push('late close')));
  });
  return heard;
}

/** Listeners of a request that is not read by its handler, beside those above. */
const LISTENERS: Record<string, (req: IncomingMessage, heard: string[]) => unknown> = {
  none: () => undefined,
  readable: (req, heard) => req.on('readable', () => heard.push(`readable ${String(req.read())}`)),
  data: (req, heard) => req.on('data', () => heard.push('data')),
  'pause()': (req, heard) => req.pause().on('pause', () => heard.push('pause')),
};

test.each(Object.entries(LISTENERS))(
  'a request without a body tells what node:http tells, listened to by %s',
  async (_what, add) => {
    const bare = createServer((_req, res) => res.end('now'));
    bare.listen(0, '127.0.0.1');
    await once(bare, 'listening');
    const app = createTarget();
    const { port } = await serve(app);
    const [expected, heard] = [bare, app.server].map((server) => {
      const heard = listen(server);
      server.prependListener('request', (req: IncomingMessage) => add(req, heard));
      return heard;
    });
    await send((bare.address() as AddressInfo).port, { method: 'GET', path: '/sync' });
    await send(port, { method: 'GET', path: '/sync' });
    await expect.poll(() => heard).toEqual(expected);
    expect(heard).toContain('response close');
    bare.close().closeAllConnections();
  },
);
