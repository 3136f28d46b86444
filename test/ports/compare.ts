/** Sends one table of requests to two services, and compares what they answer. */

import { readFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { expect } from 'vitest';

/** A request, sent to both services. */
export interface Asked {
  readonly name: string;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | FormData;
  /** The status of the port. */
  readonly status: number;
  /** Whether the text of an error is the service's own. Default: true. */
  readonly isWorded?: boolean;
}

/** What a service answered. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** A difference that is wanted, with its rule. */
export interface Difference {
  readonly rule: string;
  /** Changes an answer of the original into the one that the port has to give; undefined: the rule does not apply. */
  readonly change: (original: Answer, port: Answer, asked: Asked) => Partial<Answer> | undefined;
}

/** The uniform error body. */
export interface ErrorBody {
  readonly message: string;
  readonly description: string;
  readonly error_code: { readonly name: string; readonly value: number };
  readonly errors?: readonly { readonly in: string; readonly pointer: string; readonly detail: string }[];
}

/** Headers that belong to a connection or a moment. */
const IGNORED = ['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'];

export const hasJson = ({ headers }: Answer): boolean => /[/+]json\b/.test(headers['content-type'] ?? '');

/** Wanted differences from every other framework. */
export const ALWAYS: readonly Difference[] = [
  {
    rule: 'a success does not repeat the request id: it is in the log',
    change: ({ status, headers: { 'x-request-id': _id, ...headers } }) => (status < 400 ? { headers } : undefined),
  },
  {
    rule: 'JSON has no charset: it is always UTF-8 (RFC 8259, section 8.1)',
    change: ({ headers, ...original }) =>
      hasJson({ headers, ...original }) ? { headers: { ...headers, 'content-type': 'application/json' } } : undefined,
  },
];

/** The wanted difference of errors. @param wordsOf reads the text from an error body of the original */
export function uniformErrors(wordsOf: (body: never) => string): Difference {
  return {
    rule: 'an error has the uniform body, whose description is the text of the service, and varies by Accept',
    change: (original, port, asked) => {
      if (original.status < 400 || !hasJson(original) || !hasJson(port)) return undefined;
      return { headers: varied(original, port), body: uniform(original, port, asked) };
    },
  };

  function uniform(original: Answer, port: Answer, asked: Asked): ErrorBody {
    const { description, error_code: code, ...rest } = port.body as ErrorBody;
    const anyCode = { name: expect.stringMatching(/^\w+$/), value: expect.any(Number) };
    expect([typeof description, code], asked.name).toEqual(['string', anyCode]);
    const words = wordsOf(original.body as never);
    return { ...rest, description: asked.isWorded === false ? description : words, error_code: code };
  }
}

function varied({ headers }: Answer, { headers: { vary = '' } }: Answer): Answer['headers'] {
  const names = vary.split(', ').filter((name) => name !== 'accept');
  return names.join(', ') === (headers['vary'] ?? '') ? { ...headers, vary } : headers;
}

/** Sends a request with node:http: fetch adds `cache-control` to one with `if-none-match`. */
async function ask(url: string, { path, method = 'GET', headers = {}, body }: Asked): Promise<Answer> {
  const init = { method, headers: { 'x-request-id': 'request-7', ...headers } };
  const given = new Request(url, body === undefined ? init : { ...init, body });
  const bytes = Buffer.from(await given.arrayBuffer());
  const sent = { ...Object.fromEntries(given.headers), ...(body !== undefined && { 'content-length': bytes.length }) };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { path, method, headers: sent, agent: false }, resolve).on('error', reject).end(bytes);
  });
  const received = Buffer.concat((await response.toArray()) as Buffer[]);
  const text = (response.headers['content-encoding'] === 'gzip' ? gunzipSync(received) : received).toString();
  const kept = Object.entries(response.headers).filter(([name]) => !IGNORED.includes(name));
  const texts = Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
  const answer = { status: response.statusCode ?? 0, headers: texts, body: text };
  return hasJson(answer) && text !== '' ? { ...answer, body: JSON.parse(text) } : answer;
}

/**
 * Sends a request to both services, and expects the port to answer as the original does, except for the differences.
 *
 * @param used receives the rule of each difference that occurred
 */
export async function compare(
  { original, port }: { readonly original: string; readonly port: string },
  asked: Asked,
  differences: readonly Difference[],
  used: Set<string>,
): Promise<void> {
  let expected = await ask(original, asked);
  const answer = await ask(port, asked);
  for (const { rule, change } of differences) {
    const changed = { ...expected, ...change(expected, answer, asked) };
    if (!isDeepStrictEqual(changed, expected)) used.add(rule);
    expected = changed;
  }
  expect(answer, asked.name).toEqual(expected);
  expect(answer.status, asked.name).toBe(asked.status);
}

/** Lines of code, without comments and empty ones. */
function linesOf(file: string): string[] {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8').replace(/\/\*.*?\*\//gs, '');
  return text.split('\n').filter((line) => !/^\s*(?:\/\/.*)?$/.test(line));
}

/** Expects that a port is shorter than its original, and has no line for what needs none. */
export function expectNoGlue(original: string, port: string): void {
  const lines = linesOf(port);
  expect(lines.length).toBeLessThan(linesOf(original).length);
  const needless = /etag|if-none-match|x-request-id|randomUUID|remoteAddress|forwarded|req\.url|multipart|ratelimit-/i;
  expect(lines.filter((line) => needless.test(line))).toEqual([]);
}
