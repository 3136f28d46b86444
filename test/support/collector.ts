/** A collector of telemetry, which refuses what the protocol's specification does not allow. */

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, vi } from 'vitest';
import {
  byName, decode, pointsOf, type Plain, type Signal, type WireMetric, type WireSpan,
} from './otlp-messages.js';

/** One span, with its attributes by name. */
export interface Span extends Omit<WireSpan, 'attributes' | 'events' | 'status'> {
  readonly service: string;
  readonly attributes: Readonly<Record<string, Plain>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, Plain>> }[];
  readonly isError: boolean;
}

/** A running collector. */
export interface Collector {
  readonly url: string;
  readonly spans: Span[];
  readonly resources: Readonly<Record<string, Plain>>[];
  readonly requests: {
    readonly signal: Signal;
    readonly url: string;
    readonly headers: IncomingHttpHeaders;
    readonly count: number;
    readonly items: readonly object[];
    readonly atMs: number;
  }[];
}

export const SERVER = 2;
export const CLIENT = 3;

/** @param respond answers a request; default: 200. It may read the body later, or never. */
export async function startCollector(
  respond: (res: ServerResponse, nth: number, req: IncomingMessage) => void = (res) => res.end(),
): Promise<Collector> {
  const collector: Collector = { url: '', spans: [], resources: [], requests: [] };
  let count = 0;
  const take = ({ url = '', headers }: IncomingMessage, sent: Buffer, res: ServerResponse): void => {
    const body = headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    const signal = (/\/v1\/(\w+)$/.exec(url)?.[1] ?? 'traces') as Signal;
    const decoded = decode(signal, headers['content-type'], body);
    collector.resources.push(...decoded.map(({ resource }) => byName(resource.attributes)));
    const items = decoded.flatMap((each) => each.items);
    const count = signal === 'metrics' ? items.flatMap((item) => pointsOf(item as WireMetric)).length : items.length;
    const spans = signal !== 'traces' ? [] : decoded.flatMap(({ resource, items: all }) => {
      const service = String(byName(resource.attributes)['service.name']);
      return all.map((item) => toSpan(service, item as WireSpan));
    });
    collector.requests.push({ signal, url, headers, count, items, atMs: performance.now() });
    res.on('finish', () => void (res.statusCode === 200 && collector.spans.push(...spans)));
  };
  const server = createServer((req, res) => {
    const nth = (count += 1);
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      try {
        take(req, Buffer.concat(chunks), res);
      } catch (error) {
        res.writeHead(400).end();
        throw error;
      }
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

const OFF = { OTEL_LOGS_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' };

/** Sets variables for one test. Default: only traces are exported, and spans are sent after 20 ms. */
export function setVariables(variables: Readonly<Record<string, string>>): void {
  const all = { ...OFF, OTEL_BSP_SCHEDULE_DELAY: '20', ...variables };
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value);
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
