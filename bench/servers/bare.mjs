/**
 * `node:http` by hand: the floor that everything is compared to.
 *
 * "bare" is what a sensible developer writes, "bare tuned" what one writes who has read the source of `node:http`.
 */

import { createServer } from 'node:http';
import { readJson } from './json-body.mjs';
import { checkedOf, ERROR_BODY, fail, hello, list, listening, NOT_FOUND_BODY, resourceNames } from './service.mjs';

/** @typedef {(res: import('node:http').ServerResponse, status: number, value: unknown) => void} Send */

/** @type {Send} */
function sendNaively(res, status, value) {
  res.statusCode = status;
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify(value));
}

/** @type {Send} */
function sendTuned(res, status, value) {
  const body = JSON.stringify(value);
  res.writeHead(status, ['content-type', 'application/json', 'content-length', String(Buffer.byteLength(body))]);
  res.end(body);
}

/**
 * A request listener with its routes by hand; it tells the route it took, for a metric's label.
 *
 * @param {import('./service.mjs').Spec} spec
 * @param {Send} send
 * @param {typeof import('./checked.mjs')} [checked] for the scenario of that name
 */
export function createListener({ resources }, send, checked = undefined) {
  const names = new Set(resourceNames(resources));
  /** @type {(req: import('node:http').IncomingMessage, res: import('node:http').ServerResponse) => string} */
  return (req, res) => {
    const url = /** @type {string} */ (req.url);
    const mark = url.indexOf('?');
    const path = mark === -1 ? url : url.slice(0, mark);
    try {
      if (path === '/hello' && req.method === 'GET') {
        send(res, 200, hello());
        return '/hello';
      }
      if (path === '/list' && req.method === 'GET') {
        send(res, 200, list());
        return '/list';
      }
      if (path === '/echo' && req.method === 'POST') {
        readJson(req, (error, value) => (error === null ? send(res, 200, value) : send(res, 500, ERROR_BODY)));
        return '/echo';
      }
      if (checked !== undefined && path === '/checked' && req.method === 'POST') {
        readJson(req, (error, value) =>
          error === null && checked.validate(value)
            ? send(res, 200, checked.summary(value))
            : send(res, 400, ERROR_BODY),
        );
        return '/checked';
      }
      if (path === '/fail' && req.method === 'GET') fail();
      const [, version, name, id, parts, part, ...rest] = path.split('/');
      if (version === 'v1' && name !== undefined && names.has(name) && rest.length === 0) {
        if (id === undefined && (req.method === 'GET' || req.method === 'POST')) {
          send(res, 200, { resource: name });
          return '/v1/resource';
        }
        if (id && req.method === 'GET') {
          if (parts === undefined || (parts === 'parts' && part === undefined)) {
            send(res, 200, { id: decodeURIComponent(id) });
            return '/v1/resource/:id';
          }
          if (parts === 'parts' && part) {
            send(res, 200, { id: decodeURIComponent(id), part: decodeURIComponent(part) });
            return '/v1/resource/:id/parts/:part';
          }
        }
      }
      send(res, 404, NOT_FOUND_BODY);
    } catch {
      send(res, 500, ERROR_BODY);
    }
    return '';
  };
}

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  bare: async (spec) => listening(createServer(createListener(spec, sendNaively, await checkedOf(spec)))),
  'bare tuned': async (spec) => listening(createServer(createListener(spec, sendTuned, await checkedOf(spec)))),

  async 'bare + prom-client'(spec) {
    const { default: client } = await import('prom-client');
    client.collectDefaultMetrics();
    const durations = new client.Histogram({
      name: 'http_request_duration_seconds',
      help: 'Requests.',
      labelNames: ['method', 'route', 'status_code'],
    });
    const listener = createListener(spec, sendNaively);
    return listening(
      createServer((req, res) => {
        const stop = durations.startTimer();
        const route = listener(req, res);
        res.once('finish', () => stop({ method: req.method, route, status_code: res.statusCode }));
      }),
    );
  },
};
