/** Advisories about text that breaks out of its line in the log. */

import { expect, test } from 'vitest';
import type { Context } from 'postern';
import { JsonLogger } from '../../src/base/log.js';
import { get, HEAD, rawRequest } from '../support/raw.js';
import { createApp, expectFailures, serve } from '../support/serve.js';

const NAUGHTY = [
  '\n{"level":"error","msg":"forged"}', '\r\nlevel=error', '\0', '\u001b[2J\u001b]0;x\u0007', '\u0085\u2028\u2029', '"',
  '\\', '\\n', '\u007f\u009b', '{}',
  '__proto__', 'toJSON', 'constructor', '%0a', '\u{1f600}\ufeff', '\u202e\u2066\u200f\u061c', '${x}', '`',
  'ﷺ'.repeat(200),
];
test.for(NAUGHTY)(
  '%j in path, query, headers, body and errors stays inside one valid JSON line (CVE-2026-5078)',
  async (text) => {
    let written = '';
    const json = new JsonLogger('users', (line) => { written += line; });
    const app = expectFailures(createApp({ logger: { ...json, debug: json.info } }), 500);
    app.post('/log/:x', async (ctx: Context<{ readonly x: string }>) => {
      const { x } = ctx.params;
      ctx.log.warn(
        {
          path: ctx.path,
          query: Object.fromEntries(ctx.query),
          agent: ctx.headers['user-agent'],
          body: await ctx.text(),
          [`k${x}`]: { [x]: x },
        },
        x,
      );
      throw Object.assign(new Error(x), { user: x, level: 'forged', service: 'forged' });
    });
    const { port } = await serve(app);
    written = '';
    const encoded = encodeURIComponent(text);
    const body = Buffer.from(text);
    // What HTTP can't carry in a header is left out there.
    const agent = Buffer.from(text.replace(/[\0-\x1f\x7f]/g, '')).toString('latin1');
    const head = `POST /log/${encoded}?${encoded}=${encoded}&level=forged HTTP/1.1\r\n${HEAD}User-Agent: ${agent}\r\nX-Request-Id: ${agent}\r\nContent-Length: ${body.length}\r\n\r\n`;
    const response = await rawRequest(port, Buffer.concat([Buffer.from(head, 'latin1'), body]));
    expect(response.status).toBe(500);
    expect(await rawRequest(port, get(`/${encoded}`, `${HEAD}X-Request-Id: ${agent}\r\n`)))
      .toMatchObject({ status: 404 });

  expect(written.endsWith('\n')).toBe(true);
  const lines = written.slice(0, -1).split(/\r\n|[\n\r]/).map((line) => JSON.parse(line) as Record<string, unknown>);
  const request_id = response.headers['x-request-id'];
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(lines).toMatchObject([
    { level: 'warn', time, service: 'users', msg: text, request_id, path: `/log/${text}`, query: { level: 'forged' },
      body: text, agent },
    { level: 'error', time, service: 'users', msg: 'request failed', request_id, target: `/log/${encoded}`,
      err: { message: text, user: text } },
    { level: 'info', time, service: 'users', msg: 'request refused', target: `/${encoded}`,
      request_id: expect.stringMatching(/^[A-Za-z0-9._-]{1,128}$/) },
  ]);
  expect(written).not.toMatch(/[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/);
});

test('what could not be parsed stays inside one line as well (CVE-2026-5078)', async () => {
  let written = '';
  const json = new JsonLogger('users', (line) => { written += line; });
  const { port } = await serve(createApp({ logger: { ...json, debug: json.info } }));
  written = '';
  const forged = '{"level":"error"}';
  for (const bytes of [
    `\x16\x03\x01${forged}\r\n\r\n`,
    'GET /\x1b[2J HTTP/1.1\r\n\r\n',
    `GET / HTTP/1.1\nHost: x\n${forged}\n\n`,
    `BREW\x00 "/ HTTP/1.1\r\n${HEAD}\r\n`,
  ]) {
    expect((await rawRequest(port, bytes)).status).toBe(400);
  }
  const lines = written.slice(0, -1).split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.map(({ level, service, msg }) => [level, service, msg]))
    .toEqual(Array.from({ length: 4 }, () => ['info', 'users', 'request refused']));
});
