/**
 * Two installed copies of the built package in one process: what one makes, the other knows.
 *
 * @module-tag package
 */

import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs with `here` and `there`, two copies; an application of the first answers with what the second made. */
const SCRIPT = `
import { createRequire } from 'node:module';
import * as here from 'here';
import * as there from 'there';
const required = createRequire(import.meta.url)('there');

const Codes = there.defineErrorCodes({ gone_for_good: 10002 });
class Gone extends there.NotFound {
  static statusCode = 410;
  static errorCode = Codes.gone_for_good;
}
const lines = [];
const logger = { debug() {}, info() {}, warn() {}, error: (object) => lines.push(String(object.err)) };
const app = new here.Postern('here', { logger });
const seen = [];
app.use(async (ctx, next) => {
  let error;
  try {
    const inner = await next();
    error = inner.error;
    return inner;
  } catch (thrown) {
    error = thrown;
    throw thrown;
  } finally {
    if (error !== undefined) seen.push({
      api: error instanceof here.ApiError,
      notFound: error instanceof here.NotFound,
      http: error instanceof here.HttpError,
      conflict: error instanceof here.Conflict,
    });
  }
});
const handlers = {
  notFound: () => { throw new there.NotFound('No such user', { headers: { 'x-a': '1' } }); },
  required: () => { throw new required.NotFound('No such user'); },
  returned: () => new there.NotFound('No such user'),
  subclass: () => { throw new Gone('Long gone'); },
  http: () => { throw new there.HttpError(409, 'Twice'); },
  tooMany: () => { throw new there.TooManyRequests('Slow down', { retryAfter: 30 }); },
  code: () => { throw new here.ApiError('x', { statusCode: 418, errorCode: Codes.gone_for_good }); },
  reply: () => there.reply({ id: 7 }, { status: 201, headers: { 'x-a': '1' } }),
  replyOfNull: () => there.reply(null),
  replyInReply: () => here.reply(there.reply('x')),
  brandAlone: () => { throw Object.create({ [Symbol.for('postern.brand')]: 'ApiError' }); },
  brandedSecret: () => {
    const members = { statusCode: 404, message: 'secret', description: 'secret', errorCode: { name: 'secret', value: 1 } };
    throw Object.assign(Object.create(there.ApiError.prototype), members);
  },
  objectAsText: () => { const error = new there.NotFound('x'); error.description = { secret: 1 }; throw error; },
  wrongStatus: () => { const error = new there.NotFound('secret'); error.statusCode = 200; throw error; },
  wrongHeaders: () => { const error = new there.NotFound('secret'); error.headers = { 'x-a': ['secret'] }; throw error; },
  proxy: () => {
    const get = (target, name) => (name === 'statusCode' ? 404 : { secret: name });
    throw new Proxy(new there.NotFound('secret'), { get });
  },
  everything: () => { throw new Proxy(Object.create(there.ApiError.prototype), { get: () => 404, has: () => true }); },
  endless: () => {
    const getPrototypeOf = (target) => new Proxy(target, { getPrototypeOf: () => new Proxy({}, this) });
    const getOwnPropertyDescriptor = () => { throw new Error('trap'); };
    throw new Proxy({}, { getPrototypeOf, getOwnPropertyDescriptor });
  },
  selfPrototype: () => { const proxy = new Proxy({}, { getPrototypeOf: () => proxy }); throw proxy; },
  forgedReply: () => Object.assign(Object.create({ [Symbol.toStringTag]: 'Reply' }), { status: 201, body: 'x' }),
  forgedStatus: () => Object.assign(there.reply('x'), { status: 'secret' }),
};
for (const [name, handler] of Object.entries(handlers)) app.get('/' + name, handler);
const answers = {};
for (const name of Object.keys(handlers)) {
  const response = await app.request('/' + name);
  const text = await response.text();
  const body = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text;
  answers[name] = { status: response.status, headers: Object.fromEntries(response.headers), body };
}
let refused;
try {
  new here.ApiError('x', { errorCode: { name: 'gone_for_good', value: 10002 } });
} catch (error) {
  refused = error.name;
}
const waits = new Promise((resolve) => {
  app.get('/events', () => there.events((async function* () { yield 'a'; resolve(); await new Promise(() => {}); })()));
});
const read = (await app.request('/events')).text().catch(String);
await waits;
await app.close({ timeout: 500 });
const events = await read;
console.log(JSON.stringify({ answers, events, seen, lines, refused, apart: here.NotFound !== there.NotFound }));
`;

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: unknown;
}
interface Output {
  readonly answers: Record<string, Answer>;
  readonly events: string;
  readonly seen: object[];
  readonly lines: string[];
  readonly refused: string;
  readonly apart: boolean;
}

let folder = '';
let output: Output;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-copies-'));
  for (const name of ['here', 'there']) {
    cpSync(join(ROOT, 'dist'), join(folder, 'node_modules', name, 'dist'), { recursive: true });
    cpSync(join(ROOT, 'package.json'), join(folder, 'node_modules', name, 'package.json'));
  }
  writeFileSync(join(folder, 'main.mjs'), SCRIPT);
  const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', 'main.mjs'], { cwd: folder });
  output = JSON.parse(stdout) as Output;
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const unspecified = { name: 'framework_error_unspecified', value: 999998 };
const gone = { name: 'gone_for_good', value: 10002 };
test.for<[string, number, unknown, Record<string, string>?]>([
  ['notFound', 404, { message: 'Not found.', description: 'No such user', error_code: unspecified }, { 'x-a': '1' }],
  ['required', 404, { message: 'Not found.', description: 'No such user', error_code: unspecified }],
  ['returned', 404, { message: 'Not found.', description: 'No such user', error_code: unspecified }],
  ['subclass', 410, { message: 'Not found.', description: 'Long gone', error_code: gone }],
  ['http', 409, { message: 'Conflict', description: 'Twice', error_code: unspecified }],
  ['tooMany', 429, { message: 'Too many requests.', description: 'Slow down', error_code: unspecified },
    { 'retry-after': '30' }],
  ['code', 418, { message: 'An unknown error occurred', description: 'x', error_code: gone }],
  ['reply', 201, { id: 7 }, { 'x-a': '1' }],
  ['replyOfNull', 200, null],
])('%s of another copy is one here', ([name, status, body, headers = {}]) => {
  expect(output.apart).toBe(true);
  expect(output.answers[name]).toMatchObject({ status, body, headers });
});

test.for([
  'replyInReply',
  'brandAlone',
  'brandedSecret',
  'objectAsText',
  'wrongStatus',
  'wrongHeaders',
  'proxy',
  'everything',
  'endless',
  'selfPrototype',
  'forgedStatus',
])('%s is the fixed 500, and tells nothing', (name) => {
  expect(output.answers[name]).toMatchObject({
    status: 500,
    body: { message: 'Server Error', error_code: { value: 999999 } },
  });
  expect(JSON.stringify(output.answers[name])).not.toContain('secret');
});

test('events() of another copy end when the application closes', () => {
  expect(output.events).toBe('data: a\n\n');
});

test('an object that poses as a reply is an object', () => {
  expect(output.answers['forgedReply']).toMatchObject({ status: 200, body: { status: 201, body: 'x' } });
});

test('instanceof tells the same of both copies, type by type', () => {
  expect(output.seen.slice(0, 5)).toEqual([
    { api: true, notFound: true, http: false, conflict: false },
    { api: true, notFound: true, http: false, conflict: false },
    { api: true, notFound: true, http: false, conflict: false },
    { api: true, notFound: true, http: false, conflict: false },
    { api: false, notFound: false, http: true, conflict: false },
  ]);
});

test('a code that looks like one is none', () => {
  expect(output.refused).toBe('TypeError');
});
