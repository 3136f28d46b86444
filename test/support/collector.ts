/** A collector of traces that reads what it is sent with OpenTelemetry's own definitions. */

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, vi } from 'vitest';

interface Message {
  fromObject(object: object): object;
  toObject(message: object, options: object): ExportRequest;
}
interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}
interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly flags: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly droppedAttributesCount?: number;
  readonly status: { readonly code?: number };
  readonly events?: readonly {
    readonly name: string;
    readonly timeUnixNano: string;
    readonly attributes: readonly Attribute[];
  }[];
}
interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly scope: object; readonly spans: readonly WireSpan[] }[];
  }[];
}

/** One span, with its attributes by name. */
export interface Span extends Omit<WireSpan, 'attributes' | 'events' | 'status'> {
  readonly service: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, string | number>> }[];
  readonly isError: boolean;
}

/** A running collector. */
export interface Collector {
  readonly url: string;
  readonly spans: Span[];
  readonly resources: Readonly<Record<string, string | number>>[];
  readonly requests: {
    readonly url: string;
    readonly headers: IncomingHttpHeaders;
    readonly count: number;
    readonly atMs: number;
  }[];
}

export const SERVER = 2;
export const CLIENT = 3;

const require = createRequire(import.meta.url);
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root.js') as {
  opentelemetry: { proto: { collector: { trace: { v1: { ExportTraceServiceRequest: Message } } } } };
};
const { ExportTraceServiceRequest } = opentelemetry.proto.collector.trace.v1;
const IDS = ['traceId', 'spanId', 'parentSpanId'];

/** Reads a request; fails for anything that the definitions do not have, or have in another form. */
export function decode(body: string): ExportRequest {
  const sent = JSON.parse(body) as ExportRequest;
  const withBytes = JSON.parse(body, (key, value: unknown) =>
    IDS.includes(key) ? Buffer.from(value as string, 'hex') : value,
  ) as object;
  const read = ExportTraceServiceRequest.toObject(ExportTraceServiceRequest.fromObject(withBytes), {
    longs: String,
    bytes: String,
  });
  const decoded = JSON.parse(JSON.stringify(read), (key, value: unknown) =>
    IDS.includes(key) ? Buffer.from(value as string, 'base64').toString('hex') : value,
  ) as ExportRequest;
  expect(decoded).toEqual(sent);
  return decoded;
}

const byName = (attributes: readonly Attribute[]): Record<string, string | number> =>
  Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue } }) => [key, stringValue ?? Number(intValue)]),
  );

/** @param respond answers a request; default: 200. It may read the body later, or never. */
export async function startCollector(
  respond: (res: ServerResponse, nth: number, req: IncomingMessage) => void = (res) =>
    res.setHeader('content-type', 'application/json').end('{}'),
): Promise<Collector> {
  const collector: Collector = { url: '', spans: [], resources: [], requests: [] };
  let count = 0;
  const server = createServer((req, res) => {
    const nth = (count += 1);
    let body = '';
    req.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    req.on('end', () => {
      const decoded = decode(body).resourceSpans.flatMap(({ resource, scopeSpans }) => {
        collector.resources.push(byName(resource.attributes));
        const service = String(byName(resource.attributes)['service.name']);
        return scopeSpans.flatMap(({ spans }) => spans.map((span) => toSpan(service, span)));
      });
      collector.requests.push({
        url: req.url ?? '',
        headers: req.headers,
        count: decoded.length,
        atMs: performance.now(),
      });
      res.on('finish', () => void (res.statusCode === 200 && collector.spans.push(...decoded)));
      respond(res, nth, req);
    });
    req.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(collector, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

function toSpan(service: string, { attributes, events = [], status, ...span }: WireSpan): Span {
  const all = events.map(({ name, attributes: own }) => ({ name, attributes: byName(own) }));
  return { ...span, service, attributes: byName(attributes), events: all, isError: status.code === 2 };
}

/** Sets variables for one test. Spans are sent after 20 ms unless the test says otherwise. */
export function setVariables(variables: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries({ OTEL_BSP_SCHEDULE_DELAY: '20', ...variables })) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

/** Spans of one trace as an indented text: kind, service and name, children in order of their start. */
export function drawTree(spans: readonly Span[]): string {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const draw = (span: Span, depth: number): string[] => {
    const children = spans.filter(({ parentSpanId }) => parentSpanId === span.spanId);
    for (const child of children) {
      expect(BigInt(child.startTimeUnixNano), `${child.name} starts inside ${span.name}`)
        .toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
      expect(BigInt(child.endTimeUnixNano), `${child.name} ends inside ${span.name}`)
        .toBeLessThanOrEqual(BigInt(span.endTimeUnixNano));
    }
    const ordered = children.sort((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)));
    const line = `${'  '.repeat(depth)}${span.kind === SERVER ? 'server' : 'client'} ${span.service}: ${span.name}${span.isError ? ' !' : ''}`;
    return [line, ...ordered.flatMap((child) => draw(child, depth + 1))];
  };
  return spans.filter(({ parentSpanId }) => parentSpanId === undefined || !ids.has(parentSpanId))
    .flatMap((root) => draw(root, 0)).join('\n');
}
