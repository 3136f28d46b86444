/**
 * The README's set-up of OpenTelemetry, with the real SDK: three services in processes of their own, under concurrent
 * load. Needs the built package.
 *
 * @module-tag package
 */

import { expect, test } from 'vitest';
import { startTraced, type SdkSpan } from '../support/traced-processes.js';

const SERVER = 1;

test('under concurrent load every request is one tree of spans over three hops, with its routes and without an orphan', async () => {
  const spans: SdkSpan[] = [];
  const back = await startTraced(['back', '/stock/:id'], '', spans);
  const middle = await startTraced(['middle', '/invoices/:id', 'back', '/stock'], `back=${back.url}`, spans);
  const front = await startTraced(['front', '/orders/:id', 'middle', '/invoices'], `middle=${middle.url}`, spans);

  const count = 120;
  const ids = Array.from({ length: count }, (_, i) => String(i));
  const answers: unknown[] = [];
  const queue = ids.values();
  const worker = async (): Promise<void> => {
    for (const id of queue) answers.push(await (await fetch(`${front.url}/orders/${id}`)).json());
  };
  await Promise.all(Array.from({ length: 20 }, worker));
  expect(answers).toHaveLength(count);

  await expect.poll(() => spans.length).toBeGreaterThanOrEqual(count * 5);
  const traces = group(spans);
  expect(traces.size).toBe(count);
  const names = (of: readonly SdkSpan[]): string[] => of.map(({ name }) => name).sort();
  for (const trace of traces.values()) {
    const byId = new Map(trace.map((span) => [span.spanId, span]));
    const roots = trace.filter(({ parentId }) => parentId === undefined);
    expect(names(roots)).toEqual(['GET /orders/:id']);
    for (const { parentId } of trace)
      if (parentId !== undefined) expect(byId.has(parentId), `parent ${parentId} of ${names(trace).join()}`).toBe(true);
    const servers = trace.filter(({ kind }) => kind === SERVER);
    expect(names(servers)).toEqual(['GET /invoices/:id', 'GET /orders/:id', 'GET /stock/:id']);
    expect(servers.map(({ route }) => route).sort()).toEqual(['/invoices/:id', '/orders/:id', '/stock/:id']);
    // Each server span but the root is below a client span, which is below the server span of the hop before.
    const above = (span: SdkSpan | undefined): SdkSpan | undefined => byId.get(span?.parentId ?? '');
    const stock = servers.find(({ route }) => route === '/stock/:id');
    expect(above(above(stock))?.route).toBe('/invoices/:id');
    expect(above(above(above(above(stock))))?.route).toBe('/orders/:id');
    expect(trace).toHaveLength(5);
  }
}, 60_000);

function group(spans: readonly SdkSpan[]): Map<string, SdkSpan[]> {
  const traces = new Map<string, SdkSpan[]>();
  for (const span of spans) traces.set(span.traceId, [...(traces.get(span.traceId) ?? []), span]);
  return traces;
}
