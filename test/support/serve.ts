/**
 * Starts applications for one test and reads what they log; everything is closed when the test ends.
 *
 * An application that answers with a 5xx, or logs at error, makes its test fail, unless the test says with
 * {@link expectFailures} that this is what it is about.
 */

import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { Postern, type Listening, type Logger, type PosternOptions, type Registry } from 'postern';
import { ServiceMetrics } from '../../src/monitor/metrics-endpoint.js';

/** One logged entry. */
export interface Entry {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly object: Record<string, unknown>;
  readonly message: string | undefined;
}

/**
 * A logger that keeps its entries, but for the line that says where an application listens: it has a test of its own.
 */
export function createRecorder(): Logger & { readonly entries: Entry[] } {
  const entries: Entry[] = [];
  const at = (level: Entry['level']) => (object: object, message?: string) => {
    if (message !== 'listening') entries.push({ level, object: object as Record<string, unknown>, message });
  };
  return { entries, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** An application that is watched for failures, and logs to nobody else unless told. */
export function createApp(options: PosternOptions = {}, name = 'users'): Postern {
  return watch((logger) => new Postern(name, { version: '1.4.2', ...options, logger }), options.logger);
}

/** Listens on a free loopback port. */
export async function serve(app: Postern): Promise<Listening> {
  return app.listen({ host: '127.0.0.1', port: 0 });
}

/** A server that somebody else created, on a free loopback port; it is closed when the test ends. */
export async function listening(server: Server): Promise<Server> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return server;
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

const REGISTRY = Object.getOwnPropertyDescriptor(ServiceMetrics.prototype, 'registry') ?? {};

/**
 * The metrics of an application. Those of the process are among them only if `app.metrics` was read: to register them
 * takes as long as to create the application, and to read them longer.
 */
export function ownMetricsOf(app: Postern): Registry {
  const get = function (this: ServiceMetrics): Registry { return this.ownRegistry; };
  Object.defineProperty(ServiceMetrics.prototype, 'registry', { ...REGISTRY, get });
  try {
    return app.metrics;
  } finally {
    Object.defineProperty(ServiceMetrics.prototype, 'registry', REGISTRY);
  }
}

/** How many requests, jobs and tracked promises are under way in an application. */
export function activeTasksOf(app: Postern): number {
  return Number(/^active_task_count (\S+)/m.exec(ownMetricsOf(app).expose())?.[1]);
}

/** What each application of a running test may fail with. */
const expected = new WeakMap<Postern, Set<number | string>>();

/**
 * Declares what an application fails with in this test: the status of each 5xx that it answers (others are ignored, for
 * tables), and the message of each line at error but `request failed`, which belongs to the 5xx. It has to happen, too.
 *
 * @returns the application
 */
export function expectFailures<App extends Postern>(app: App, ...failures: readonly (number | string)[]): App {
  const declared = failures.filter((failure) => typeof failure === 'string' || failure >= 500);
  expected.set(app, new Set([...(expected.get(app) ?? []), ...declared]));
  return app;
}

/**
 * Makes an application that is closed when the test ends, and fails the test if the application failed unexpectedly. A
 * logger of the test's own is read if it is a recorder.
 */
export function watch(create: (logger: Logger) => Postern, logger: Logger | false = false): Postern {
  // Of an entry the message alone is kept: an error holds on to the request through its stack.
  const messages: string[] = [];
  const app = create(
    logger || { debug() {}, info() {}, warn() {}, error: (_object, message = '') => void messages.push(message) },
  );
  onTestFinished(async () => {
    await app.close({ timeout: 1000 });
    const durations = ownMetricsOf(app).get('http_request_duration_seconds');
    const at = durations?.labelNames.indexOf('status_code') ?? -1;
    const statuses = [...(durations?.samples.values() ?? [])].map(({ labelValues }) => Number(labelValues[at]));
    const lines = [...messages, ...errorsOf(logger)].filter((message) => message !== 'request failed');
    expect(
      [...new Set([...statuses.filter((status) => status >= 500), ...lines])].sort(),
      'failures of the application; expectFailures() says which ones a test is about',
    ).toEqual([...(expected.get(app) ?? [])].sort());
  });
  return app;
}

function errorsOf(logger: Logger | false): string[] {
  if (logger === false || !('entries' in logger)) return [];
  const { entries } = logger as ReturnType<typeof createRecorder>;
  return entries.filter(({ level }) => level === 'error').map(({ message = '' }) => message);
}
