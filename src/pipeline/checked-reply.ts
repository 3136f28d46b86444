/*
 * Holds replies to the `response` of their route, with the option `validateResponses`. Loaded with the first such reply.
 *
 * The JSON that is sent is checked: a date is a text there. With `'output'` the handler's value is checked, and the
 * schema's output is sent. Streams, bytes and the body of a standard `Response` are not: to check them is to read them.
 */

import { responseSchema, type MaybeResponse } from '../endpoint/schemas.js';
import type { HandlerResult } from '../http/context.js';
import { Reply, toReply } from '../http/reply.js';
import { check, describeFindings } from '../payload/schema-check.js';
import { propsOf } from '../payload/standard-schema.js';
import { isStream, tagOf } from '../payload/bytes.js';

/**
 * Checks the result of a handler, and returns it, or the reply to send in its place.
 *
 * @param what the route, for the log: `GET /users/:id`
 * @param sendsOutput whether the reply has the schema's output
 * @throws {Error} when the reply does not fit
 */
export async function checkReply(
  what: string,
  response: NonNullable<MaybeResponse>,
  sendsOutput: boolean,
  result: HandlerResult,
): Promise<HandlerResult> {
  if (result instanceof Error) return result;
  const isOpaque = tagOf(result) === '[object Response]';
  const replied = isOpaque ? new Reply(null, { status: (result as Response).status }) : toReply(result);
  const { status, statusText, body } = replied;
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
  const checked = await check(`response of ${what}`, props, sendsOutput ? body : wireForm(body));
  const { issues } = checked;
  if (issues === undefined) {
    if (!sendsOutput) return result;
    return new Reply(checked.value, { status, statusText, headers: replied.ownHeaders });
  }
  const findings = describeFindings('body', issues, issues.length);
  throw new Error(`the reply of ${what} does not fit its response ${status}: ${findings}`);
}

function wireForm(body: unknown): unknown {
  if (body === undefined || typeof body === 'string') return body;
  const json = JSON.stringify(body) as string | undefined;
  return json === undefined ? undefined : (JSON.parse(json) as unknown);
}
