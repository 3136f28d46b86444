/** Runs one program with Express 5 and with Postern, and compares what a client gets from both. */

import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync, inflateSync, brotliDecompressSync } from 'node:zlib';
import express from 'express';
import { connect, reply, type ConnectMiddleware, type Middleware, type Postern } from 'postern';
import { expect, onTestFinished } from 'vitest';
import { createApp, expectFailures, serve } from './serve.js';

interface Uploaded {
  readonly fieldname: string;
  readonly originalname: string;
  readonly mimetype: string;
  readonly size: number;
}

/** The request with what middleware has added to it. */
export interface Added extends IncomingMessage {
  readonly auth?: { readonly admin?: boolean; readonly sub?: string };
  readonly body?: Readonly<Record<string, unknown>>;
  readonly cookies?: Readonly<Record<string, unknown>>;
  readonly signedCookies?: Readonly<Record<string, unknown>>;
  readonly file?: Uploaded;
  readonly files?: readonly Uploaded[] | Readonly<Record<string, readonly Uploaded[]>>;
  readonly log?: { info(text: string): void };
  readonly session?: { views?: number };
  readonly user?: { readonly id: number; readonly username: string };
}

/** The reply of a handler. */
export interface Sent {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Buffer | (() => AsyncIterable<string>);
}

/** What a program is written against. */
export interface Site {
  use(...middleware: readonly ConnectMiddleware[]): void;
  get(path: string, ...rest: readonly [...ConnectMiddleware[], (req: Added) => Sent]): void;
  post(path: string, ...rest: readonly [...ConnectMiddleware[], (req: Added) => Sent]): void;
  /** What middleware reports beside its replies, such as a line of a log. */
  readonly notes: unknown[];
}

/** A request of a program. Its cookies are those that earlier replies have set. */
export interface Asked {
  readonly line: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** The status, so that the table can be read alone. */
  readonly status: number;
  /** Whether the body is the framework's own error. */
  readonly isError?: boolean;
}

/** A program of the table. */
export interface Program {
  readonly name: string;
  readonly build: (site: Site) => void;
  readonly requests: readonly Asked[];
  /** How many notes there are in the end. */
  readonly notes?: number;
  /** Whether the client's address and scheme come from `x-forwarded-*`. */
  readonly isBehindProxy?: boolean;
}

/** Sends the requests of a program to both, and compares replies and notes. */
export async function compare({ name, build, requests, notes = 0, isBehindProxy = false }: Program): Promise<void> {
  const theirs = withExpress(isBehindProxy);
  build(theirs.site);
  const server = theirs.app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close().closeAllConnections());

  const failures = requests.map(({ status }) => status);
  const ours = withPostern(expectFailures(createApp(isBehindProxy ? { trustProxy: ['127.0.0.1'] } : {}), ...failures));
  build(ours.site);
  const { port } = await serve(ours.app);

  const jars: Record<string, string>[] = [{}, {}];
  for (const asked of requests) {
    const expected = await ask((server.address() as AddressInfo).port, asked, jars[0] ?? {});
    const actual = await ask(port, asked, jars[1] ?? {});
    expect(actual, asked.line).toEqual(expected);
    expect(actual.status, asked.line).toBe(asked.status);
  }
  await expect.poll(() => theirs.site.notes.length).toBe(notes);
  await expect.poll(() => ours.site.notes.length).toBe(notes);
  // A line about a reply may come after the next request has arrived.
  const sorted = (list: readonly unknown[]): string[] => list.map((note) => JSON.stringify(note)).sort();
  expect(sorted(ours.site.notes), name).toEqual(sorted(theirs.site.notes));
}

function withExpress(isBehindProxy: boolean): { readonly app: express.Express; readonly site: Site } {
  const app = express();
  if (isBehindProxy) app.set('trust proxy', 1);
  const add =
    (method: 'get' | 'post'): Site['get'] =>
    (path, ...rest) => {
      const handler = rest.at(-1) as (req: Added) => Sent;
      app[method](path, ...(rest.slice(0, -1) as express.RequestHandler[]), (req, res) => {
        const { status = 200, headers = {}, body } = handler(req as IncomingMessage as Added);
        for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
        res.statusCode = status;
        if (typeof body === 'function') return void Readable.from(body()).pipe(res);
        // As `res.send` does; node:http would not send the length of a reply to HEAD.
        if (status !== 204) res.setHeader('content-length', Buffer.byteLength(body));
        res.end(body);
      });
    };
  const use = (...middleware: readonly ConnectMiddleware[]): unknown =>
    app.use(...(middleware as unknown as express.RequestHandler[]));
  return { app, site: { use, get: add('get'), post: add('post'), notes: [] } };
}

function withPostern(app: Postern): { readonly app: Postern; readonly site: Site } {
  const add =
    (method: 'get' | 'post'): Site['get'] =>
    (path, ...rest) => {
      const handler = rest.at(-1) as (req: Added) => Sent;
      const middleware: Middleware[] = (rest.slice(0, -1) as ConnectMiddleware[]).map((each) => connect(each));
      app[method](path, { middleware }, ({ raw }) => {
        const { status = 200, headers = {}, body } = handler(raw.req);
        return reply(typeof body === 'function' ? body() : body === '' ? undefined : body, { status, headers });
      });
    };
  const use = (...middleware: readonly ConnectMiddleware[]): void => {
    for (const each of middleware) app.use(connect(each));
  };
  return { app, site: { use, get: add('get'), post: add('post'), notes: [] } };
}

/** Headers that each framework, or the connection, adds by itself. */
const OWN = ['date', 'connection', 'keep-alive', 'x-powered-by', 'x-request-id', 'transfer-encoding'];
/** Headers of an error's body, whose form is each framework's own; finalhandler adds two that protect its HTML. */
const OF_ERRORS = ['content-type', 'content-length', 'vary', 'content-security-policy', 'x-content-type-options'];

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string | undefined;
}

async function ask(
  port: number,
  { line, headers = {}, body, isError }: Asked,
  jar: Record<string, string>,
): Promise<Answer> {
  const [method = '', path = ''] = line.split(' ');
  const cookie = Object.entries(jar)
    .map(([name, value]) => `${name}=${value}`)
    .join('; ');
  const fields = { host: 'shop.example', ...(cookie === '' ? {} : { cookie }), ...headers };
  const request = httpRequest({ port, host: '127.0.0.1', method, path, headers: fields, agent: false }).end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const bytes = await buffer(response);
  for (const set of response.headers['set-cookie'] ?? []) {
    const [, name = '', value = ''] = /^([^=]*)=([^;]*)/.exec(set) ?? [];
    jar[name] = value;
  }
  const compared = Object.entries(response.headers)
    .filter(([name]) => !OWN.includes(name) && !(isError === true && OF_ERRORS.includes(name)))
    // cors sets it for old browsers, and Postern leaves it out (RFC 9110, section 8.6).
    .filter(([name]) => !(name === 'content-length' && response.statusCode === 204))
    .map(([name, value]) => {
      const isTime = /^(?:(?:x-)?ratelimit-reset|retry-after)$/.test(name);
      return [name, isTime ? 'TIME' : (JSON.parse(withoutChance(JSON.stringify(value))) as unknown)] as const;
    });
  const text = method === 'HEAD' ? '' : decoded(bytes, response.headers['content-encoding']);
  return {
    status: response.statusCode,
    headers: Object.fromEntries(compared),
    body: isError === true ? undefined : text.replaceAll(String(port), 'PORT'),
  };
}

function decoded(bytes: Buffer, coding: string | undefined): string {
  const decode = { gzip: gunzipSync, deflate: inflateSync, br: brotliDecompressSync }[coding ?? ''];
  return (decode === undefined ? bytes : decode(bytes)).toString('latin1');
}

/** A header without session ids and times. */
function withoutChance(text: string): string {
  return text
    .replace(/s%3A[^;"]*/g, 'SESSION')
    .replace(/Expires=[^;"]*/g, 'Expires=TIME')
    .replace(/\b[\d.]+ms\b/g, 'TIME')
    .replace(/\b(t|reset)=\d+/g, '$1=TIME');
}
