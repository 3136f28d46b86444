/*
 * Holds replies to the `response` of their route, with the option `validateResponses`. Loaded with the first such reply.
 *
 * What is checked is the JSON that goes out: a date is a text there. Streams and bytes, and the body of a standard
 * `Response`, can't be looked at without taking them.
 */

import type { HandlerResult } from '../http/context.js';
import { toReply } from '../http/reply.js';
import { describeFindings } from '../payload/findings.js';
import { check } from '../payload/schema-check.js';
import { propsOf } from '../payload/standard-schema.js';
import { isStream, tagOf } from '../payload/stream.js';
import { responseSchema, type MaybeResponse } from '../endpoint/schemas.js';

/**
 * Checks the result of a handler, and returns it.
 *
 * @param what the route, for the log: `GET /users/:id`
 * @throws {Error} when the reply does not fit
 */
export async function checkReply(
  what: string,
  response: NonNullable<MaybeResponse>,
  result: HandlerResult,
): Promise<HandlerResult> {
  if (result instanceof Error) return result;
  const isOpaque = tagOf(result) === '[object Response]';
  const { status, body } = isOpaque ? { status: (result as Response).status, body: null } : toReply(result);
  if (status < 200 || status > 299) return result;
  const schema = responseSchema(response, status);
  if (schema === undefined) throw new Error(`${what} replied with ${status}, which its response does not declare`);
  if (isOpaque || isStream(body) || body instanceof Uint8Array) return result;
  if (schema === null) {
    if (body !== undefined) throw new Error(`${what} replied to ${status} with a body; its response declares none`);
    return result;
  }
  const props = propsOf(schema);
  if (props === undefined) return result;
  const { issues } = await check(`response of ${what}`, props, wireForm(body));
  if (issues === undefined) return result;
  const findings = describeFindings('body', issues, issues.length);
  throw new Error(`the reply of ${what} does not fit its response ${status}: ${findings}`);
}

function wireForm(body: unknown): unknown {
  if (body === undefined || typeof body === 'string') return body;
  const json = JSON.stringify(body) as string | undefined;
  return json === undefined ? undefined : (JSON.parse(json) as unknown);
}
