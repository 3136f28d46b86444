/**
 * Services in processes of their own, with or without the guide's set-up of the OpenTelemetry SDK. Need the built
 * package.
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, expect, onTestFinished } from 'vitest';

/** A span of the SDK. */
export interface SdkSpan {
  readonly name: string;
  /** 1: server, 2: client. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly route: string | undefined;
}

const PAGE = readFileSync(new URL('../../docs/guides/traces.md', import.meta.url), 'utf8');
const SERVICE = fileURLToPath(new URL('./traced-service.mjs', import.meta.url));
// Beside the services, so that it finds the packages of the tests.
const SDK = fileURLToPath(new URL(`./tracing-${process.pid}.mjs`, import.meta.url));

/** Writes the block of the guide, but for the exporter: spans come to the test instead of a collector. */
function writeSdk(): void {
  const [, block = ''] = /^```js run=no\n(\/\/ tracing\.mjs.*?)^```$/ms.exec(PAGE) ?? [];
  const exporter = `class OTLPTraceExporter {
  export(spans, done) {
    const toSpan = (span) => {
      const { name, kind, attributes, parentSpanContext: parent } = span;
      return { name, kind, ...span.spanContext(), route: attributes['http.route'], parentId: parent?.spanId };
    };
    process.send({ spans: spans.map(toSpan) }, () => done({ code: 0 }));
  }
  async shutdown() {}
}`;
  const line = "const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');";
  expect(block).toContain(line);
  writeFileSync(SDK, block.replace(line, exporter));
  afterAll(() => rmSync(SDK, { force: true }));
}

/**
 * @param args as those of `traced-service.mjs`
 * @param spans gets the spans of the SDK; undefined to start the service without it
 */
export async function startTraced(
  args: string[],
  connections: string,
  spans: SdkSpan[] | undefined,
  variables: Readonly<Record<string, string>> = {},
): Promise<{ child: ChildProcess; url: string }> {
  if (spans !== undefined) writeSdk();
  const env = { ...process.env, SERVICE_CONNECTIONS: connections, OTEL_BSP_SCHEDULE_DELAY: '50', ...variables };
  const execArgv = spans === undefined ? [] : ['--import', pathToFileURL(SDK).href];
  const child = fork(SERVICE, args, { execArgv, env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.on('message', (message: { spans?: SdkSpan[] }) => spans?.push(...(message.spans ?? [])));
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  return { child, url };
}
