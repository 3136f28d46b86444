/* Sends requests to a service that is played in memory, for tests: by an application, or by a function like `fetch`. */

import { Readable } from 'node:stream';
import type { ServiceStandIn } from './call-options.js';
import { callError } from './service-error.js';
import { isResponse, toReadable } from '../payload/bytes.js';
import { CODING_HEADERS } from '../payload/headers.js';
import { Answer, type AnswerSource } from './answer.js';
import type { Limit } from './limit.js';
import type { ServiceRequest, Transport } from './request.js';
import { createRequest } from '../wire/in-memory.js';

/**
 * If the stand-in throws, or returns something else than a `Response`, the call fails with a 502, as it does with a
 * broken answer over HTTP.
 */
export function createStandInTransport(name: string, standIn: ServiceStandIn): Transport {
  // Not every service name can be a host name: in a URL, "7" is the address 0.0.0.7.
  const url = `http://${/^[a-z][a-z0-9-]*$/i.test(name) ? name : 'localhost'}`;
  const ask = async (request: ServiceRequest, signal: AbortSignal): Promise<AnswerSource> => {
    const { service, target, method, headers, body } = request;
    try {
      const init: RequestInit = { method, headers: { ...headers }, signal, redirect: 'manual' };
      if (body?.content instanceof Uint8Array) init.body = new Uint8Array(body.content);
      else if (body !== undefined)
        Object.assign(init, { body: Readable.toWeb(toReadable(body.content)), duplex: 'half' });
      const response: unknown = await (typeof standIn === 'function'
        ? standIn(createRequest(url + target, init))
        : standIn.request(target, init));
      if (isResponse(response)) return toSource(response);
    } catch (cause) {
      throw callError(request, 502, `${service} failed in memory`, { cause });
    }
    throw callError(request, 502, `${service} returned no Response in memory`);
  };
  const open = (request: ServiceRequest, limit: Limit): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const abort = new AbortController();
      limit.whenEnded((reason) => {
        abort.abort(reason);
        reject(reason);
      });
      ask(request, abort.signal).then((source) => {
        resolve(new Answer(request, source, limit));
        limit.whenEnded(() => source.destroy());
      }, limit.end);
    });
  return { url, open, close: () => undefined };
}

/** Converts a response to what `node:http` would emit. */
function toSource({ status, statusText, headers: given, body, url }: Response): AnswerSource {
  // A response that `fetch` received has its URL.
  const headers = [...given].filter(([name]) => url === '' || !CODING_HEADERS.includes(name));
  const { 'set-cookie': _cookies, ...single } = Object.fromEntries(headers);
  return Object.assign(body === null ? Readable.from([]) : toReadable(body), {
    statusCode: status,
    statusMessage: statusText,
    headers: single,
    rawHeaders: headers.flat(),
  });
}
