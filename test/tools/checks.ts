/** Checks what the service answers, how it drains, and the spans that it exports. A check returns what is wrong. */

import { Agent, createServer, request } from 'node:http';
import { connect, type AddressInfo } from 'node:net';

/** Where the service listens. */
export interface Addresses {
  readonly url: string;
  readonly monitor: string;
}

interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

interface Row {
  readonly path: string;
  readonly method?: string;
  /** Whether the request is sent to the listener for monitoring. */
  readonly isForMonitor?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  readonly answer: string | RegExp;
  readonly header?: readonly [name: string, value: string];
  /** The status and answer if the process can open no further connection. */
  readonly unconnected?: readonly [status: number, answer: RegExp];
}

const SHOP_ORIGIN = ['access-control-allow-origin', 'https://shop.example'] as const;
const JSON_TYPE = { 'content-type': 'application/json' };
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' };
const SOLD_OUT = JSON.stringify({
  message: 'Sold out.',
  description: 'The last one is gone.',
  error_code: { name: 'sold_out', value: 10_001 },
});
const UNREACHABLE = [503, /"message":"Service Unavailable"/] as const;
const toError = (name: string, value: number): RegExp => new RegExp(`"error_code":{"name":"${name}","value":${value}}`);
const UNSPECIFIED = /"error_code":{"name":"framework_error_unspecified"/;
const UNKNOWN = toError('framework_unknown_error', 999_999);

const ROWS: readonly Row[] = [
  { path: '/', status: 200, answer: 'hello', header: SHOP_ORIGIN },
  { path: '/articles', status: 200, answer: '["chair"]', header: ['x-shop', '200'] },
  { path: '/articles', method: 'PUT', status: 204, answer: '' },
  { path: '/articles', method: 'HEAD', status: 200, answer: '', header: ['content-length', '9'] },
  { path: '/articles', method: 'POST', status: 405, answer: UNSPECIFIED, header: ['allow', 'GET, HEAD, OPTIONS, PUT'] },
  { path: '/articles', headers: { 'x-postern-scope': 'public' }, status: 200, answer: '["chair"]' },
  { path: '/', headers: { 'x-postern-scope': 'public' }, status: 404, answer: UNSPECIFIED },
  { path: '/nothing', status: 404, answer: UNSPECIFIED, header: SHOP_ORIGIN },
  { path: '/nothing', headers: { accept: 'application/problem+json' }, status: 404, answer: /"type":"about:blank"/ },
  { path: '/%zz', status: 400, answer: UNSPECIFIED },
  { path: '/shelves/a%2Fb', status: 200, answer: '{"shelf":"a/b"}' },
  { path: '/shelves/7', method: 'DELETE', status: 204, answer: '' },
  { path: '/v1/version', status: 200, answer: '{"version":1}' },

  { path: '/orders', method: 'POST', headers: JSON_TYPE, body: '{"article":"chair","count":2}', status: 201,
    answer: '{"placed":"chair","count":2}' },
  { path: '/orders', method: 'POST', headers: JSON_TYPE, body: '{"article":"","count":2}', status: 400,
    answer: /"name":"framework_invalid_request".*"pointer":"#\/article"/ },
  { path: '/orders', method: 'POST', headers: JSON_TYPE, body: '{"article":"chair","count":101}', status: 409,
    answer: SOLD_OUT },
  { path: '/search?tag=a', status: 200, answer: '{"tag":["a"],"page":1}' },
  { path: '/search?tag=a&x=1', headers: { 'x-postern-scope': 'public' }, status: 400,
    answer: toError('framework_invalid_query_params', 999_400) },
  { path: '/json', method: 'POST', headers: JSON_TYPE, body: '{"a":[1]}', status: 200, answer: '{"a":[1]}' },
  { path: '/json', method: 'POST', headers: JSON_TYPE, body: '{', status: 400, answer: UNSPECIFIED },
  { path: '/json', method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}', status: 415,
    answer: UNSPECIFIED },
  { path: '/json', method: 'POST', headers: JSON_TYPE, body: `"${'a'.repeat(2000)}"`, status: 413,
    answer: UNSPECIFIED },
  { path: '/form', method: 'POST', headers: FORM_TYPE, body: 'a=1&b=%C3%A4', status: 200,
    answer: '{"a":"1","b":"ä"}' },
  { path: '/upload', method: 'POST', body: 'x'.repeat(5000), status: 200, answer: '{"length":5000}' },
  { path: '/slow', status: 504, answer: toError('framework_timeout', 999_504) },
  { path: '/legacy/a?b=c', status: 200, answer: 'legacy /a?b=c' },

  { path: '/replies/bytes', status: 200, answer: 'bytes', header: ['content-type', 'application/octet-stream'] },
  { path: '/replies/stream', status: 200, answer: 'abc' },
  { path: '/replies/generator', status: 200, answer: 'de' },
  { path: '/replies/web-stream', status: 200, answer: 'f' },
  { path: '/replies/response', status: 203, answer: 'of Fetch', header: ['x-made-by', 'fetch'] },
  { path: '/replies/redirect', status: 302, answer: '', header: ['location', '/shelves/a%20b'] },

  { path: '/errors/own', status: 409, answer: SOLD_OUT },
  { path: '/errors/ready-made', status: 404,
    answer: /"message":"Not found\.","description":"There is no article 7\."/ },
  { path: '/errors/http', status: 503, answer: /"description":"Down for repairs\."/ },
  { path: '/errors/foreign', status: 418, answer: /I am a teapot\./ },
  { path: '/errors/unknown', status: 500, answer: UNKNOWN },
  { path: '/errors/lost', status: 500, answer: UNKNOWN },

  { path: '/calls/stand-in', status: 200, answer: '{"invoice":"7"}' },
  { path: '/calls/http', status: 200, answer: '{"id":"7","name":"Article 7"}', unconnected: UNREACHABLE },
  { path: '/calls/typed/7', status: 200, answer: 'Article 7', unconnected: UNREACHABLE },
  { path: '/calls/typed-error', status: 200, answer: '{"isSoldOut":true,"byService":true}',
    unconnected: [200, /"isSoldOut":false/] },
  { path: '/calls/refused', status: 404, answer: UNSPECIFIED, unconnected: UNREACHABLE },
  { path: '/calls/mismatch', status: 502, answer: toError('framework_invalid_response', 999_502),
    unconnected: UNREACHABLE },

  { path: '/documents/openapi', status: 200, answer: '{"openapi":"3.1.1","hasOrders":true}' },
  { path: '/documents/gateways', status: 200, answer: '[true,true,true,true,true]' },
  { path: '/documents/registry', status: 200,
    answer: '{"isOneClass":true,"sample":"sales_total{till=\\"1\\"} 3.0","hasDefaults":true}' },
  { path: '/documents/in-memory', status: 200, answer: '["chair"]' },

  { path: '/shop/ping/', status: 200, answer: /^{"response":"pong","process_time":"\d+ ms"}$/ },
  { path: '/shop/ping/?depth=1', status: 200,
    answer: /^(?=.*"billing":{"response":{"response":"pong")(?=.*"stock":{"response":{"response":"pong")/,
    unconnected: [200, /"stock":{"response":{"message":"Service Unavailable"/] },
  { path: '/shop/health/', status: 200,
    answer: /"application_version":"1\.2\.3".*"ip":"[\d.]+".*"shelves":{"status":"OK"/,
    unconnected: [200, /"framework_version":"[^"]+","checks"/] },
  { path: '/shop/metrics/', status: 404, answer: UNSPECIFIED },
  { path: '/shop/health/', isForMonitor: true, status: 200, answer: /"service":"shop".*"status":"OK"/ },
  { path: '/shop/metrics/', isForMonitor: true, status: 200,
    answer: /http_request_duration_seconds_count{[^}]*route="\/slow"[^}]*status_code="504"[^}]*} 1\.0\n/ },
  { path: '/shop/metrics/', isForMonitor: true, headers: { accept: 'application/openmetrics-text' }, status: 200,
    answer: /service_info{[^}]*application_version="1\.2\.3"[^]*\n# EOF\n$/ },
  { path: '/shop/metrics/', isForMonitor: true, headers: { 'accept-encoding': 'gzip' }, status: 200,
    answer: /^\x1f/, header: ['content-encoding', 'gzip'] },
  { path: '/shop/metrics/?json', isForMonitor: true, status: 200,
    answer: /"request_count":\d+,"proc_rss_mem_bytes":\d+/,
    unconnected: [200, /"request_count":\d+,"timestamp"/] },
  { path: '/shop/openapi/', isForMonitor: true, status: 200, answer: /"openapi":"3\.1\.1".*"\/search"/ },
];

type RequestOptions = Pick<Row, 'method' | 'headers' | 'body'>;

/** Sends requests on one connection at a time. */
class Client {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  /** @param url of the listener @param attempts while the service refuses connections */
  constructor(
    readonly url: string,
    readonly attempts: number,
  ) {}

  async send(path: string, options: RequestOptions = {}): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#sendOnce(path, options);
      } catch (error) {
        if (attempt >= this.attempts) throw error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  #sendOnce(path: string, { method = 'GET', headers = {}, body }: RequestOptions): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(this.url + path, { method, headers, agent: this.#agent, timeout: 30_000 }, (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.on('error', reject);
        res.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: res.statusCode ?? 0, headers: res.headers, body: text });
        });
      });
      sent.on('timeout', () => sent.destroy(new Error('no answer within 30 s')));
      sent.on('error', reject);
      sent.end(body);
    });
  }

  /** Sends half of a body once the handler reads. @returns a function that sends the rest and returns the answer */
  beginUpload(path: string, half: string): Promise<() => Promise<Answer>> {
    return new Promise((begun, failed) => {
      const length = String(2 * half.length);
      const headers = { 'content-length': length, expect: '100-continue' };
      const sent = request(this.url + path, { method: 'POST', headers, agent: this.#agent, timeout: 30_000 });
      const answered = new Promise<Answer>((resolve, reject) => {
        sent.on('error', reject);
        sent.on('timeout', () => sent.destroy(new Error('no answer within 30 s')));
        sent.on('response', (res) => {
          let body = '';
          res.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
          res.on('error', reject);
          res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body }));
        });
      });
      answered.catch(failed);
      // A drain closes a connection whose request it has not read.
      sent.once('continue', () =>
        sent.write(half, () =>
          begun(() => {
            sent.end(half);
            return answered;
          }),
        ),
      );
      sent.flushHeaders();
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Connections to the service that are kept between the checks. */
export interface Clients {
  readonly main: Client;
  readonly monitor: Client;
}

/**
 * Opens a connection to each listener.
 *
 * @param isUnconnected whether the service will be unable to accept more connections
 */
export async function openClients({ url, monitor }: Addresses, isUnconnected = false): Promise<Clients> {
  const attempts = isUnconnected ? 200 : 1;
  const clients = { main: new Client(url, attempts), monitor: new Client(monitor, attempts) };
  for (const client of [clients.main, clients.monitor]) await client.send('/shop/ping/');
  return clients;
}

/**
 * @param exhaust lets the service use up its file descriptors
 * @returns what is wrong with the answers of the service
 */
export async function checkAnswers(clients: Clients, exhaust?: () => Promise<void>): Promise<string[]> {
  const problems: string[] = [];
  await exhaust?.();
  for (const row of ROWS) {
    const { path, method = 'GET', isForMonitor, header, unconnected } = row;
    const isUnconnected = exhaust !== undefined && unconnected !== undefined;
    const [status, answer] = isUnconnected ? unconnected : [row.status, row.answer];
    const request = `${method} ${path}`;
    try {
      if (isUnconnected) {
        // A reply may have ended its connection, whose descriptor is free then.
        for (const client of [clients.main, clients.monitor]) await client.send('/shop/ping/');
        await exhaust();
      }
      const got = await clients[isForMonitor === true ? 'monitor' : 'main'].send(path, row);
      const isRight = typeof answer === 'string' ? got.body === answer : answer.test(got.body);
      if (got.status !== status || !isRight)
        problems.push(`${request}: ${status} ${answer} expected, not ${got.status} ${got.body.slice(0, 2000)}`);
      if (header !== undefined && got.headers[header[0]] !== header[1])
        problems.push(`${request}: ${header.join(': ')} expected, not ${got.headers[header[0]]}`);
    } catch (error) {
      problems.push(`${request}: ${String(error)}`);
    }
  }
  return exhaust !== undefined ? problems : [...problems, ...(await checkParseError(clients.main.url))];
}

/** A request that node:http cannot parse is answered, with the uniform body. */
async function checkParseError(url: string): Promise<string[]> {
  const { hostname, port } = new URL(url);
  const answer = await new Promise<string>((resolve) => {
    let text = '';
    const socket = connect(Number(port), hostname, () => socket.write('NO HTTP\r\n\r\n'));
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    socket.on('error', () => undefined).on('close', () => resolve(text));
    socket.setTimeout(30_000, () => socket.destroy());
  });
  const isRight = /^HTTP\/1\.1 400 /.test(answer) && UNSPECIFIED.test(answer);
  return isRight ? [] : [`a request line without a version: 400 expected, not ${answer}`];
}

/** The answer to a request that got none. */
function failureOf(error: unknown): Answer {
  return { status: 0, headers: {}, body: String(error) };
}

/**
 * Sends half of an upload, lets the service drain, and sends the rest once its readiness says that it drains.
 *
 * @param drain asks the service to drain
 */
export async function checkDrain({ main, monitor }: Clients, drain: () => void): Promise<string[]> {
  const finish = await main.beginUpload('/upload', 'x'.repeat(50_000));
  drain();
  for (let attempt = 1; ; attempt += 1) {
    // The drain may close the idle connection just when the request is sent.
    const { status, body } = await monitor.send('/shop/health/').catch((error: unknown) => failureOf(error));
    if (status === 503 && body.includes('"status":"DRAINING"')) break;
    if (attempt === 500) return [`readiness in a drain: 503 DRAINING expected, not ${status} ${body}`];
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { status, body } = await finish();
  main.close();
  monitor.close();
  const isRight = status === 200 && body === '{"length":100000}';
  return isRight ? [] : [`an upload during a drain: 200 with 100000 bytes expected, not ${status} ${body}`];
}

/** Errors in the log that the checks cause. */
const LOGGED = [/framework_timeout/, /Down for repairs/, /the shelf fell down/, /shelves is a Map/, /\/calls\//];

/** @param errors the entries at error, as texts @returns what is wrong with them */
export function checkLog(errors: readonly string[]): string[] {
  const missing = LOGGED.filter((pattern) => !errors.some((text) => pattern.test(text)));
  const surplus = errors.filter((text) => !LOGGED.some((pattern) => pattern.test(text)));
  return [
    ...missing.map((pattern) => `the log has no error like ${pattern}`),
    ...surplus.map((text) => `not expected in the log: ${text}`),
  ];
}

/** A span in OTLP's JSON. */
interface Span {
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly { key: string; value: { stringValue?: string } }[] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

/** A collector of spans. */
export interface Collector {
  /** Variables for the service. */
  readonly env: Readonly<Record<string, string>>;
  /** @returns what is wrong with the spans of a typed call: two of requests, with one of the call between them */
  check(): string[];
  close(): void;
}

/** Starts a collector on a free port of the loopback address. */
export async function startCollector(): Promise<Collector> {
  const spans: (Span & { readonly service: string })[] = [];
  const server = createServer((req, res) => {
    let body = '';
    req.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    req.on('end', () => {
      res.setHeader('content-type', 'application/json').end('{}');
      if (req.url !== '/v1/traces') return;
      for (const { resource, scopeSpans } of (JSON.parse(body) as Export).resourceSpans) {
        const service = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
        for (const span of scopeSpans.flatMap((scope) => scope.spans)) spans.push({ ...span, service });
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
    check() {
      const root = spans.find(({ service, name }) => service === 'shop' && name === 'GET /calls/typed/:id');
      const call = spans.find(({ kind, parentSpanId }) => kind === 3 && parentSpanId === root?.spanId);
      const leaf = spans.find(({ service, parentSpanId }) => service === 'stock' && parentSpanId === call?.spanId);
      if (root !== undefined && call !== undefined && leaf !== undefined) return [];
      const names = spans.map(({ service, name, kind }) => `${service} ${name} (${kind})`);
      return [`spans of GET /calls/typed/7: a request, a call and a request expected; exported: ${names.join(', ')}`];
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
