/**
 * The README's set-up of OpenTelemetry, with the real SDK: three services in processes of their own, under concurrent load. Needs the built package.
 *
 * @module-tag package
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, expect, onTestFinished, test } from 'vitest';

interface Span {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly route: string | undefined;
}

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const SERVICE = fileURLToPath(new URL('../support/traced-service.mjs', import.meta.url));
// Beside the services, so that it finds the packages of the tests.
const SDK = fileURLToPath(new URL(`../support/tracing-${process.pid}.mjs`, import.meta.url));
const SERVER = 1;

/** The block of the README, but for the exporter: spans come here instead of to a collector. */
function writeSdk(): void {
  const [, block = ''] = /^```js\n(\/\/ tracing\.mjs.*?)^```$/ms.exec(README) ?? [];
  const exporter = `class OTLPTraceExporter {
  export(spans, done) {
    const toSpan = ({ name, kind, attributes, parentSpanContext, spanContext }) => ({ name, kind, ...spanContext(), route: attributes['http.route'], parentId: parentSpanContext?.spanId });
    process.send({ spans: spans.map((span) => toSpan({ name: span.name, kind: span.kind, attributes: span.attributes, parentSpanContext: span.parentSpanContext, spanContext: () => span.spanContext() })) }, () => done({ code: 0 }));
  }
  async shutdown() {}
}`;
  const line = "const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');";
  expect(block).toContain(line);
  writeFileSync(SDK, block.replace(line, exporter));
}

afterAll(() => rmSync(SDK, { force: true }));

async function start(spans: Span[], args: string[], connections = ''): Promise<{ child: ChildProcess; url: string }> {
  const env = { ...process.env, SERVICE_CONNECTIONS: connections, OTEL_BSP_SCHEDULE_DELAY: '50' };
  const child = fork(SERVICE, args, { execArgv: ['--import', pathToFileURL(SDK).href], env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.on('message', (message: { spans?: Span[] }) => spans.push(...(message.spans ?? [])));
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  return { child, url };
}

test('under concurrent load every request is one tree of spans over three hops, with its routes and without an orphan', async () => {
  writeSdk();
  const spans: Span[] = [];
  const back = await start(spans, ['back', '/stock/:id']);
  const middle = await start(spans, ['middle', '/invoices/:id', 'back', '/stock'], `back=${back.url}`);
  const front = await start(spans, ['front', '/orders/:id', 'middle', '/invoices'], `middle=${middle.url}`);

  const count = 120;
  const ids = Array.from({ length: count }, (_, i) => String(i));
  const answers: unknown[] = [];
  const queue = ids.values();
  const worker = async (): Promise<void> => {
    for (const id of queue) answers.push(await (await fetch(`${front.url}/orders/${id}`)).json());
  };
  await Promise.all(Array.from({ length: 20 }, worker));
  expect(answers).toHaveLength(count);

  await expect.poll(() => spans.length, { timeout: 15_000 }).toBeGreaterThanOrEqual(count * 5);
  const traces = group(spans);
  expect(traces.size).toBe(count);
  const names = (of: readonly Span[]): string[] => of.map(({ name }) => name).sort();
  for (const trace of traces.values()) {
    const byId = new Map(trace.map((span) => [span.spanId, span]));
    const roots = trace.filter(({ parentId }) => parentId === undefined);
    expect(names(roots)).toEqual(['GET /orders/:id']);
    for (const { parentId } of trace) if (parentId !== undefined) expect(byId.has(parentId), `parent ${parentId} of ${names(trace).join()}`).toBe(true);
    const servers = trace.filter(({ kind }) => kind === SERVER);
    expect(names(servers)).toEqual(['GET /invoices/:id', 'GET /orders/:id', 'GET /stock/:id']);
    expect(servers.map(({ route }) => route).sort()).toEqual(['/invoices/:id', '/orders/:id', '/stock/:id']);
    // Each server span but the root is below a client span, which is below the server span of the hop before.
    const above = (span: Span | undefined): Span | undefined => byId.get(span?.parentId ?? '');
    const stock = servers.find(({ route }) => route === '/stock/:id');
    expect(above(above(stock))?.route).toBe('/invoices/:id');
    expect(above(above(above(above(stock))))?.route).toBe('/orders/:id');
    expect(trace).toHaveLength(5);
  }
}, 60_000);

function group(spans: readonly Span[]): Map<string, Span[]> {
  const traces = new Map<string, Span[]>();
  for (const span of spans) traces.set(span.traceId, [...(traces.get(span.traceId) ?? []), span]);
  return traces;
}
