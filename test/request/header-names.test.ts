/** Advisories about names of headers that reach a prototype. */

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { startPeer } from '../support/peer.js';
import { get, HEAD, rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

const PROTOTYPE_NAMES = [
  '__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__',
];
test.for(PROTOTYPE_NAMES)(
  'a header named %s harms no reader of headers, trailers, queries or answers (CVE-2026-21710)',
  async (name) => {
    const before = Reflect.ownKeys(Object.prototype);
    const peer = await startPeer((_req, res) => res.setHeader(name, 'x').setHeader('content-type', 'text/plain').end('answer'));
    const app = createApp({ trustProxy: ['127.0.0.1'], settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
    app.use((_ctx, next) => next());
    app.post('/all', async (ctx) => {
      const { body, headers } = await ctx.service('peer').get('/', { headers: [[name, 'x']] });
      return {
        ip: ctx.ip,
        id: ctx.id,
        query: ctx.query.get(name),
        state: Reflect.ownKeys(ctx.state).map(String),
        json: await ctx.json(),
        peer: body,
        header: headers.get(name),
      };
    });
    const { port } = await serve(app);
    const fields = `${name}: x\r\n`.repeat(2);
    const chunked = `POST /all?${name}=1 HTTP/1.1\r\n${HEAD}x-request-id: mine\r\ncontent-type: application/json\r\n${fields}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n${fields}\r\n`;
    const all = await rawRequest(port, chunked);
    expect([all.status, JSON.parse(all.body)])
      .toEqual([200, { ip: '127.0.0.1', id: 'mine', query: '1', state: [], json: {}, peer: 'answer', header: 'x' }]);
    for (const [path, status] of [
      ['/users/metrics/', 200],
      ['/users/health/', 200],
      ['/users/ping/?depth=1', 200],
      [`/${name}`, 404],
      ['/all', 405],
    ] as const) {
      expect((await rawRequest(port, get(path, HEAD + fields))).status, path).toBe(status);
    }
    expect((await app.request('/users/ping/', { headers: [[name, 'x']] })).status).toBe(200);
    expect(Reflect.ownKeys(Object.prototype)).toEqual(before);
  },
);

const SRC = fileURLToPath(new URL('../../src', import.meta.url));
const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
test('nothing reads headersDistinct or trailersDistinct, which throw on some releases of Node.js (CVE-2026-21710)', () => {
  for (const file of sources)
    expect(readFileSync(`${SRC}/${file}`, 'utf8'), file).not.toMatch(/(?:headers|trailers)Distinct/);
});
