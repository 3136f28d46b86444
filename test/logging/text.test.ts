/** The default logger on a terminal: lines for people. Everywhere else: JSON. */

import { expect, onTestFinished, test, vi } from 'vitest';
import { NotFound, Postern, type Context } from 'postern';

const RED = '\u001b[31m';

interface Terminal { readonly isTTY?: boolean; readonly env?: Readonly<Record<string, string>> }

/** Runs an application whose stderr is a terminal or not, and gives what it wrote. */
async function written({ isTTY = true, env = {} }: Terminal, log: (ctx: Context) => void): Promise<string> {
  for (const name of ['LOG_FORMAT', 'NO_COLOR', 'KUBERNETES_SERVICE_HOST']) vi.stubEnv(name, env[name]);
  const before = process.stderr.isTTY;
  process.stderr.isTTY = isTTY;
  let text = '';
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => ((text += String(chunk)), true));
  onTestFinished(() => {
    vi.unstubAllEnvs();
    spy.mockRestore();
    process.stderr.isTTY = before;
  });
  const app = new Postern('users', { logLevel: 'debug', accessLog: false }).get('/', (ctx) => void log(ctx));
  await (await app.request('/', { headers: { 'x-request-id': 'r1' } })).text();
  await expect.poll(() => text).toMatch(/\n$/);
  await app.close();
  return text;
}

const isJson = (text: string): boolean => text.startsWith('{"level":');

test.for<Terminal & { json: boolean; colored?: boolean }>([
  { json: false, colored: true },
  { isTTY: false, json: true },
  { env: { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, json: true },
  { env: { KUBERNETES_SERVICE_HOST: '' }, json: false, colored: true },
  { env: { LOG_FORMAT: 'json' }, json: true },
  { env: { LOG_FORMAT: '' }, json: false, colored: true },
  { env: { LOG_FORMAT: 'text', KUBERNETES_SERVICE_HOST: '10.0.0.1' }, json: false, colored: true },
  { isTTY: false, env: { LOG_FORMAT: 'text' }, json: false, colored: false },
  { env: { NO_COLOR: '1' }, json: false, colored: false },
  { env: { NO_COLOR: '' }, json: false, colored: true },
])('%j', async ({ json, colored = false, ...terminal }) => {
  const text = await written(terminal, (ctx) => ctx.log.error({ a: 1 }, 'hello'));
  expect([isJson(text), text.includes(RED), text.split('\n').length]).toEqual([json, colored, 2]);
});

test.for(['text ', 'JSON', 'pretty'])('LOG_FORMAT %j is a TypeError', (format) => {
  vi.stubEnv('LOG_FORMAT', format);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(() => new Postern('users'))
    .toThrow(new TypeError(`LOG_FORMAT is ${JSON.stringify(format)}; give one of json, text`));
  expect(() => new Postern('users', { logger: false })).not.toThrow();
});

const PLAIN = { env: { NO_COLOR: '1' } };

test('a line has time, level, service, message and fields, in the order of the calls', async () => {
  const text = await written(PLAIN, ({ log }) => {
    log.info({ port: 8000, url: 'http://x', text: 'a b', list: [1], none: null }, 'listening');
    log.debug('second');
    log.warn({ level: 'forged' }, 'third');
  });
  expect(text.replaceAll(/^\d\d:\d\d:\d\d\.\d{3} /gm, '')).toBe(
    `INFO  users listening request_id=r1 port=8000 url=http://x text="a b" list=[1] none=null
DEBUG users second request_id=r1
WARN  users third request_id=r1
`,
  );
});

test('an error is below the line of its entry, indented: message and members, each frame, then the causes', async () => {
  const text = await written(PLAIN, ({ log }) => {
    log.error({ err: new NotFound('There is no user 7.', { cause: new TypeError('inner') }) }, 'failed');
    log.error({ err: 'no error' }, 'failed');
    log.error({ err: { code: 'X' } }, 'failed');
  });
  const rows = text.split('\n');
  expect(rows[0]).toMatch(/ ERROR users failed request_id=r1$/);
  expect(rows[1]).toMatch(/^ {4}NotFound: Not found\. There is no user 7\. statusCode=404 /);
  expect(rows[2]).toMatch(/^ {8}at .*text\.test\.ts:\d+/);
  const cause = rows.indexOf('    caused by TypeError: inner');
  expect(rows[cause + 1]).toMatch(/^ {8}at .*text\.test\.ts:\d+/);
  expect(rows.slice(-3)).toEqual([
    expect.stringMatching(/failed request_id=r1 "no error"$/),
    expect.stringMatching(/failed request_id=r1 \{"code":"X"\}$/),
    '',
  ]);
});

test('a line break in a message is no line of its own, whatever follows it', async () => {
  const text = await written(PLAIN, ({ log }) => {
    log.error({ err: new Error('a\n12:00:00.000 INFO  users forged') }, 'failed');
  });
  expect(text.split('\n')[1]).toBe('    Error: a\\u000a12:00:00.000 INFO  users forged');
});

test('nothing in an entry can move the cursor, break the line or turn the direction of writing', async () => {
  const hostile = 'a\n\r\u001b[2J\u0085\u009b\u007f\u202e\u2066\u2028"=';
  const text = await written({}, ({ log }) =>
    log.error({ [hostile]: hostile, err: Object.assign(new Error(hostile), { [hostile]: hostile }) }, hostile),
  );
  const uncolored = text.replaceAll(/\u001b\[\d\dm/g, '').replaceAll(/\n(?: {4}| {8}at .*|$)/g, '');
  expect(uncolored).not.toMatch(/[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/);
  expect(uncolored).toContain('users a\\u000a\\u000d\\u001b[2J\\u0085\\u009b\\u007f\\u202e\\u2066\\u2028"=');
});
