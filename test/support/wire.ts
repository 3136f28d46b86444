/**
 * Raw bytes against an application that keeps what it saw: what came back, and which requests its middleware was given.
 */

import { connect } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { Postern, type Context, type PosternOptions } from 'postern';
import { PATIENCE_MS } from './patience.js';
import { parseResponses, type RawResponse } from './raw.js';
import { WireConnection } from './strict-client.js';

/** A request that must never be seen when it stands in a body. */
export const CANARY = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';

/** The request behind every input, which ends the connection, and its answer. */
export const LAST = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
export const LAST_ANSWER = 'GET /last';

export const CHUNKED = 'Transfer-Encoding: chunked\r\n';
export const END = '0\r\n\r\n';

/** A status; what the handler said, for a 200; or any one of several. */
export type Answer = number | string | readonly (number | string)[];

/** Some bytes and what becomes of them. */
export interface Row {
  readonly bytes: string;
  /**
   * Of all responses, in order; that to {@link LAST}, which follows the bytes, is among them where the connection goes
   * on.
   */
  readonly answers: readonly Answer[];
  /** What other versions of Node.js answer. */
  readonly or?: readonly Answer[];
  /** The same where the bytes come in pieces. */
  readonly inPieces?: readonly Answer[];
  /** The targets that middleware saw; unless given, those of the 200s. */
  readonly seen?: readonly string[];
  /**
   * The target of the request that its handler may have begun with before the rest of it came; that of the first unless
   * given.
   */
  readonly begins?: string;
  /** Whether the client ends its side behind the bytes, instead of asking for {@link LAST}. */
  readonly ends?: boolean;
}

/** One of a table, under a name. */
export type NamedRow = readonly [what: string, row: Row];

/** What came of some bytes. */
export interface Outcome {
  readonly responses: readonly RawResponse[];
  readonly answers: readonly (number | string)[];
  readonly seen: readonly string[];
}

/** How bytes are sent. */
export interface Sending {
  /** Most bytes of one write; all at once unless given. */
  readonly piece?: number;
  readonly ends?: boolean;
  /** What follows as soon as `when` is true of the requests that were seen and of the bytes that came back. */
  readonly follow?: { readonly bytes: string; when(seen: readonly string[], received: string): boolean };
}

/** A request with a body. */
export function post(headers: string, body: string, path = '/read', version = '1.1'): string {
  return `POST ${path} HTTP/${version}\r\nHost: x\r\n${headers}\r\n${body}`;
}

/** A request without one. */
export function get(path: string, headers = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
}

/** One chunk of a chunked body. */
export function chunk(data: string, size: string = data.length.toString(16)): string {
  return `${size}\r\n${data}\r\n`;
}

/** What `/read` answers to a request with that body. */
export function read(body: string, method = 'POST'): string {
  return `${method} /read ${JSON.stringify(body)}`;
}

/** An application that says what it saw, and keeps it apart by connection. */
export class Wire {
  readonly app: Postern;
  #port = 0;
  readonly #seen = new Map<number, string[]>();

  constructor(options: PosternOptions = {}) {
    this.app = new Postern('wire', { logger: false, ...options });
    // Around everything that could be parsed: a handler sees nothing that this doesn't.
    this.app.use((ctx, next) => {
      this.#seen.get(ctx.raw.req.socket.remotePort ?? 0)?.push(ctx.raw.req.url ?? '');
      return next();
    });
    const name = (ctx: Context): string => `${ctx.method} ${ctx.path}`;
    const echo = async (ctx: Context): Promise<string> =>
      `${name(ctx)} ${JSON.stringify(Buffer.from(await ctx.bytes()).toString('latin1'))}`;
    this.app.get('/', name).get('/last', name).get('/smuggled', name).route('/unread', { GET: name, POST: name });
    this.app.route('/read', { GET: echo, POST: echo, DELETE: echo });
    this.app.post('/streamed', async function* (ctx) {
      yield name(ctx);
    });
    this.app.get('/later/:n', async (ctx) => {
      for (let turns = Number(ctx.params.n); turns > 0; turns -= 1) await new Promise(setImmediate);
      return name(ctx);
    });
  }

  get port(): number {
    return this.#port;
  }

  async start(): Promise<void> {
    this.#port = (await this.app.listen({ host: '127.0.0.1', port: 0 })).port;
  }

  stop(): Promise<void> {
    return this.app.close({ timeout: 100 });
  }

  /** Sends bytes on a new connection and reads until the server closes it. */
  async exchange(bytes: string, { piece = Infinity, ends = false, follow }: Sending = {}): Promise<Outcome> {
    const seen: string[] = [];
    const text = await new Promise<string>((resolve, reject) => {
      let received = '';
      const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
      const write = async (): Promise<void> => {
        this.#seen.set(socket.localPort ?? 0, seen);
        const buffer = Buffer.from(bytes, 'latin1');
        for (let at = 0; at < buffer.length && socket.writable; at += piece) {
          socket.write(buffer.subarray(at, at + piece));
          if (piece < buffer.length) await new Promise(setImmediate);
        }
        while (follow !== undefined && socket.writable && !follow.when(seen, received)) await new Promise(setImmediate);
        if (follow !== undefined && socket.writable) socket.write(follow.bytes, 'latin1');
        if (ends) socket.end();
      };
      socket.on('connect', () => void write());
      socket.on('data', (data) => (received += data.toString('latin1')));
      socket.setTimeout(PATIENCE_MS, () =>
        socket.destroy(new Error(`the server hangs behind ${JSON.stringify(received)}`)),
      );
      // What a server that has answered does not take any more.
      socket.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET') reject(error);
      });
      socket.on('close', () => {
        this.#seen.delete(socket.localPort ?? 0);
        resolve(received);
      });
    });
    const responses = parseResponses(text);
    return { responses, answers: responses.map(toAnswer), seen };
  }

  /** Sends a row at once, and again in pieces, and holds what becomes of it against what should. */
  async check({
    bytes,
    answers,
    or,
    inPieces = answers,
    seen,
    begins = targetIn(bytes),
    ends = false,
  }: Row): Promise<void> {
    const all = ends ? bytes : bytes + LAST;
    const whole = await this.exchange(all, { ends });
    expect(whole.answers).toEqual(matching(whole.answers, answers, or));
    expect(whole.seen).toEqual(seen ?? targetsOf(whole.answers));

    const pieces = await this.exchange(all, { ends, piece: all.length < 2000 ? 1 : 997 });
    expect(pieces.answers, 'in pieces').toEqual(matching(pieces.answers, inPieces, or));
    const others = (targets: readonly string[]): readonly string[] =>
      targets.filter((target) => target !== begins && target !== '/last');
    expect(others(pieces.seen), 'in pieces').toEqual(others(whole.seen));

    const after = await this.exchange(LAST);
    expect([after.answers, after.seen], 'afterwards').toEqual([[LAST_ANSWER], ['/last']]);
  }
}

/** What was expected, each choice made as it was in fact; of two expectations the one that came true. */
function matching(
  actual: readonly (number | string)[],
  expected: readonly Answer[],
  other: readonly Answer[] = expected,
): readonly Answer[] {
  const resolve = (answers: readonly Answer[]): readonly Answer[] => answers.map((answer, i) => {
    const given = actual[i];
    return typeof answer === 'object' && given !== undefined && answer.includes(given) ? given : answer;
  });
  return isDeepStrictEqual(resolve(other), actual) ? actual : resolve(expected);
}

/** The target of the first request in some bytes. */
function targetIn(bytes: string): string {
  return bytes.trimStart().split(' ')[1] ?? '';
}

/** The targets of answers that a handler gave. */
function targetsOf(answers: readonly (number | string)[]): string[] {
  return answers.filter((answer) => typeof answer === 'string').map((answer) => answer.split(' ')[1] ?? '');
}

/** The body of a 200, or the status; whatever refuses does so with the uniform body. */
function toAnswer({ status, headers, body }: RawResponse): number | string {
  if (status === 200) return body;
  if (status >= 400) {
    expect(headers['content-type']).toBe('application/json');
    expect(JSON.parse(body)).toEqual({
      message: expect.any(String) as unknown,
      description: expect.any(String) as unknown,
      error_code: { name: 'framework_error_unspecified', value: 999998 },
    });
  }
  return status;
}

/** Sends a request for `/`, and reads its reply or disconnects in the middle of it. */
export async function askOrLeave(port: number, method: string, disconnects: boolean): Promise<void> {
  const client = await WireConnection.open(port);
  onTestFinished(() => client.destroy());
  await client.write(`${method} / HTTP/1.1\r\nHost: x\r\n\r\n`);
  if (!disconnects) return void (await client.finalResponse(method));
  await expect.poll(() => client.rest.length).toBeGreaterThan(1000);
  await client.destroy();
}
