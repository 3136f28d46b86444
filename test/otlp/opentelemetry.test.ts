/**
 * Traces without an SDK, with a service in the middle that has one, or none. Needs the built package.
 *
 * @module-tag package
 */

import { expect, test } from 'vitest';
import { CLIENT, SERVER, startCollector, type Collector } from '../support/collector.js';
import { startTraced, type SdkSpan } from '../support/traced-processes.js';

interface AnySpan {
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly name: string;
}

const COUNT = 10;
const KIND: Readonly<Record<number, string>> = { [SERVER]: 'server', [CLIENT]: 'client' };

/** From a server span without children up to the root: kinds and names. */
function pathUp(spans: readonly AnySpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const parents = new Set(spans.map(({ parentId }) => parentId));
  let span = spans.find(({ spanId }) => !parents.has(spanId));
  const path: string[] = [];
  for (; span !== undefined; span = byId.get(span.parentId ?? '')) path.push(`${KIND[span.kind]} ${span.name}`);
  return path;
}

async function traces(collector: Collector, sdk: readonly SdkSpan[], each: number): Promise<AnySpan[][]> {
  await expect.poll(() => collector.spans.length + sdk.length).toBe(COUNT * each);
  const all: AnySpan[] = [
    ...collector.spans.map((span) => ({ ...span, parentId: span.parentSpanId })),
    ...sdk.map((span) => ({ ...span, kind: span.kind + 1 })),
  ];
  expect(new Set(all.map(({ spanId }) => spanId)).size, 'no span twice').toBe(all.length);
  return [...new Set(all.map(({ traceId }) => traceId))].map((id) => all.filter(({ traceId }) => traceId === id));
}

test.for([
  { middle: 'the SDK', hasSdk: true, isExported: true,
    path: ['server GET /stock/:id', 'client GET', 'server GET /invoices/:id', 'client GET', 'server GET /orders/:id'] },
  { middle: 'neither the SDK nor the variable', hasSdk: false, isExported: false,
    path: ['server GET /stock/:id', 'client GET', 'server GET /orders/:id'] },
])(
  'with $middle in the middle every request is one tree, and no span is there twice',
  { timeout: 60_000 },
  async ({ hasSdk, isExported, path }) => {
    const collector = await startCollector();
    const sdk: SdkSpan[] = [];
    const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    const back = await startTraced(['back', '/stock/:id'], '', undefined, variables);
    const middle = await startTraced(
      ['middle', '/invoices/:id', 'back', '/stock'],
      `back=${back.url}`,
      hasSdk ? sdk : undefined,
      isExported ? variables : {},
    );
    const front = await startTraced(
      ['front', '/orders/:id', 'middle', '/invoices'],
      `middle=${middle.url}`,
      undefined,
      variables,
    );
    await Promise.all(
      Array.from({ length: COUNT }, async (_, id) =>
        expect((await fetch(`${front.url}/orders/${id}`)).status).toBe(200),
      ),
    );
    const all = await traces(collector, sdk, path.length);
    expect(all).toHaveLength(COUNT);
    for (const trace of all) expect(pathUp(trace)).toEqual(path);
  },
);
