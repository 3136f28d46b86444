/* Holds requests and replies to the schemas of their route. */

import type { DeclaredOptions } from '../endpoint/route-options.js';
import { responseSchema, type MaybeResponse, type Part } from '../endpoint/schemas.js';
import { Context, type Handler, type HandlerResult } from './context.js';
import { discard, isError, Reply, toReply } from './reply.js';
import { InvalidRequest } from '../base/errors.js';
import { isResponse, isStream, letFail } from '../payload/bytes.js';
import { inputOf, listNames } from '../payload/json-schema.js';
import { toJson } from '../payload/lost-members.js';
import { check, describeFindings, toFinding } from '../payload/schema-check.js';
import { propsOf, type SchemaResult, type StandardProps } from '../payload/standard-schema.js';

const MAX_FINDINGS = 32;

/** Input of a handler, besides its context. */
export type Input = { [Name in Part]?: unknown };

/** A handler that takes its input, if its route has schemas for it. */
export type InputHandler = (ctx: Context, input?: Input) => HandlerResult | Promise<HandlerResult>;

/**
 * Checks the input of a handler before it runs. Parameters, query and headers are checked and reported together; the
 * body is not even read when one of them doesn't fit.
 *
 * @param what the route, for messages: `POST /users`
 */
export function withInput(what: string, schemas: DeclaredOptions, handler: InputHandler): Handler {
  const heads = (['params', 'query', 'headers'] as const).flatMap((part) => {
    const schema = propsOf(schemas[part]);
    return schema === undefined ? [] : [{ part, where: `${part} of ${what}`, schema, read: READERS[part](schema) }];
  });
  const parts = heads.map(({ part }) => part);
  const body = propsOf(schemas.body);
  return async (ctx) => {
    // Each of them async, so that a part that fails at once leaves no other rejection that nobody handles.
    const checks = heads.map(async ({ where, schema, read }) => check(where, schema, read(ctx)));
    const input = toInput(parts, await Promise.all(checks));
    if (body !== undefined) {
      const result = await check(`body of ${what}`, body, await Context.jsonOf(ctx));
      if (result.issues !== undefined) throw toInvalid(['body'], [result]);
      input.body = result.value;
    }
    return handler(ctx, input);
  };
}

/** Functions that read a part of the request in the form that its schema gets. */
const READERS = {
  params: () => (ctx: Context) => ctx.params,
  query: queryReader,
  headers: () => (ctx: Context) => Object.assign(Object.create(null) as object, ctx.headers),
};

/** @throws {InvalidRequest} when any of the parts doesn't fit */
function toInput(parts: readonly Part[], results: readonly SchemaResult[]): Input {
  const input: Input = {};
  for (const [index, part] of parts.entries()) {
    const result = results[index];
    if (result?.issues !== undefined) throw toInvalid(parts, results);
    input[part] = result?.value;
  }
  return input;
}

/** The error with the first findings of all parts. */
function toInvalid(parts: readonly Part[], results: readonly SchemaResult[]): InvalidRequest {
  const misfits = results.flatMap(({ issues = [] }, index) =>
    issues.slice(0, MAX_FINDINGS).map((issue) => ({ part: parts[index] as Part, issue })),
  );
  const count = results.reduce((sum, { issues = [] }) => sum + issues.length, 0);
  const [first] = misfits;
  const findings = misfits.slice(0, MAX_FINDINGS).map(({ part, issue }) => ({ in: part, ...toFinding(issue) }));
  return new InvalidRequest(first && describeFindings(first.part, [first.issue], count), { findings });
}

/** Each name with its value, or with a list where it is repeated or the schema says so. */
function queryReader(schema: StandardProps): (ctx: Context) => Record<string, string | string[]> {
  const { named, others } = listNames(inputOf(schema));
  return (ctx) => {
    const query = Object.create(null) as Record<string, string | string[]>;
    for (const [name, value] of ctx.query) {
      const known = query[name];
      if (known === undefined) query[name] = others || named.has(name) ? [value] : value;
      else if (typeof known === 'string') query[name] = [known, value];
      else known.push(value);
    }
    return query;
  };
}

/**
 * Checks the replies of a handler before they are sent; it then rejects with an error if one does not fit.
 *
 * The JSON that is sent is checked: a date is a text there. With `'output'` the handler's value is checked, and the
 * schema's output is sent. Streams, bytes and the body of a standard `Response` are not: to check them is to read them.
 *
 * @param what the route, for the log: `GET /users/:id`
 * @param mode the option `validateResponses`
 */
export function withReply(
  what: string,
  response: NonNullable<MaybeResponse>,
  mode: true | 'output',
  handler: InputHandler,
): InputHandler {
  return async (ctx, input) => {
    const result = await handler(ctx, input);
    // If the handler has replied by `ctx.raw`, its result is not sent.
    if (isError(result) || ctx.exchange.isHandedOver) return result;
    const isOpaque = isResponse(result);
    const replied = isOpaque ? new Reply(null, { status: result.status }) : toReply(result);
    const { status, statusText, body } = replied;
    // A check takes its time, and may leave members out.
    letFail(body, true);
    if (status < 200 || status > 299) return result;
    const schema = responseSchema(response, status);
    if (schema === undefined) {
      discard(result);
      throw new Error(`${what} replied with ${status}, which its response does not declare`);
    }
    if (isOpaque || isStream(body) || body instanceof Uint8Array) return result;
    if (schema === null && body !== undefined)
      throw new Error(`${what} replied to ${status} with a body; its response declares none`);
    const props = propsOf(schema);
    if (props === undefined) return result;
    const checked = await check(`response of ${what}`, props, mode === 'output' ? body : wireForm(body));
    if (checked.issues !== undefined) {
      const findings = describeFindings('body', checked.issues, checked.issues.length);
      throw new Error(`the reply of ${what} does not fit its response ${status}: ${findings}`);
    }
    return mode === 'output' ? new Reply(checked.value, { status, statusText, headers: replied.ownHeaders }) : result;
  };
}

function wireForm(body: unknown): unknown {
  if (body === undefined || typeof body === 'string') return body;
  return JSON.parse(jsonOf(body)) as unknown;
}

/** A value as JSON, from which a body of the platform, such as a `Blob`, may be missing. */
function jsonOf(body: unknown): string {
  try {
    return (JSON.stringify(body) as string | undefined) ?? 'null';
  } catch {
    // A bigint: this error says where it is.
    return toJson(body);
  }
}
