/* An application: its routes, its monitoring endpoints, and its life from listening to closed. */

import { setMaxListeners } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { monotonicNow, setTimeout } from '../base/clock.js';
import { MAX_TIMEOUT_MS, TIME, within } from '../base/deadline.js';
import type { ErrorCode } from '../base/error-codes.js';
import { CompiledRoutes } from '../answer/compiled-routes.js';
import type { ServingOptions, Handler, Middleware } from '../answer/context.js';
import { createRequest, requestInMemory } from '../wire/in-memory.js';
import { SCOPE, type ScopeOptions } from '../wire/scope.js';
import { bindLogger, defaultLoggerOf, isSilent, logSafely, type SafeLogger } from '../base/log.js';
import { ServiceClients, type ServiceClient } from '../mesh/service-client.js';
import { serviceUrlsOf, type Settings } from '../mesh/settings.js';
import type { Registry } from '../metrics/registry.js';
import { addMonitoringEndpoints } from '../monitor/endpoints.js';
import { formatUserAgent } from '../propagation/caller.js';
import { Jobs, type JobFunction, type JobOptions } from '../job/job.js';
import { Health } from '../monitor/health.js';
import { ServiceMetrics } from '../monitor/metrics-endpoint.js';
import { Tasks } from '../monitor/tasks.js';
import { assertOptions, show } from '../base/options-check.js';
import { Overload } from '../overload/overload.js';
import { assertWhere, numberOf, PORT, withPort, type Listening, type ListeningOnPath, type Where } from './address.js';
import type { DescriptorOptions, ListenOptions, PathOptions } from './address.js';
import { Listener } from './listener.js';
import { CLOSE, describeInFlight, DRAIN_TIMEOUT_MS, drainDelayOf, endWithProcess, runCloseHooks } from './closing.js';
import type { CloseOptions } from './closing.js';
import { resolveOptions, type PosternOptions, type ResolvedOptions } from './options.js';
import type { ConnectMiddleware } from '../answer/connect.js';
import { AccessLog } from '../answer/observers.js';
import { StoryObserver } from '../answer/story.js';
import { SlowClients } from '../wire/slow-clients.js';
import { assertMiddleware, RouteGroup } from './route-group.js';
import { OPENAPI, type OpenApiSettings } from '../endpoint/document-settings.js';
import { Router } from '../routing/router.js';
import { Story } from '../story/story.js';

/** How long, in ms, after listening the event loop and the garbage collector begin to be watched. */
const WATCH_DELAY_MS = 1000;

/** How long, in ms, requests in flight have after an exception that nobody caught. */
const LAST_MOMENT_MS = 1000;

/** Minimum time limit of the close hooks, in ms: they have it even if no time is left. */
const MIN_HOOK_MS = 1000;

/** How long, in ms, a scrape of the monitoring listener may take when everything else is closed. */
const LAST_SCRAPE_MS = 1000;

/**
 * A microservice.
 * @example
 * const app = new Postern('users', { settings: { SERVICE_CONNECTIONS: ['billing'] } });
 * app.get('/users/:id', (ctx) => ({ id: ctx.params.id }));
 * await app.run();
 */
export class Postern extends RouteGroup {
  /** The name of the service: the first segment of its monitoring endpoints, and `service` in its documents. */
  readonly name: string;
  /** The version of the service: the option `version`, else `APPLICATION_VERSION`, else `UNKNOWN`. */
  readonly version: string;
  /** The route table. `router.routes` lists every route, `router.routesPublic` the public ones. */
  readonly router: Router<Handler>;
  /** The health checks: `app.health.check(name, check)` adds one. */
  readonly health: Health;
  /** The connections to other services, from the option `settings` and the environment. */
  readonly settings: Settings;
  /** Members of the enumerations in the option `errorCodes`. */
  readonly errorCodes: readonly ErrorCode[];
  /**
   * The logger, for everything that is not a request: start-up, queue consumers, events of a database client. Its
   * calls never throw.
   *
   * @example
   * app.log.info({ host: 'redis.example' }, 'connected');
   */
  readonly log: SafeLogger;
  /**
   * Aborts when the application stops to accept connections: at the end of the `delay` of a drain. Streams and
   * consumers that would never end can end then; work that is still running is cut off after `timeout`.
   *
   * @example
   * const next = await fetch('http://queue.example/next', { signal: app.closing });
   */
  readonly closing: AbortSignal;
  /** The `node:http` server; it listens after {@link listen}. */
  readonly server: Server;
  /** How its OpenAPI document is made. @internal */
  readonly [OPENAPI]: OpenApiSettings;
  /** Handles requests of a `node:http` server that someone else made. */
  readonly handler: (req: IncomingMessage, res: ServerResponse) => void;

  readonly #options: Omit<ResolvedOptions, 'services'> & ServingOptions;
  readonly #tasks: Tasks;
  readonly #metrics: ServiceMetrics;
  readonly #overload: Overload | null;
  readonly #listener: Listener;
  /** The listener of the option `monitor`: it has routes of its own, and the middleware of the application. */
  readonly #monitor: Listener | null;
  readonly #closeHooks: (() => unknown)[] = [];
  readonly #stop: AbortController;
  #opening: Promise<Listening | ListeningOnPath> | undefined;
  #closing: Promise<boolean> | undefined;
  #closeExport: (() => Promise<void>) | undefined;
  #stopWatching: (() => void) | undefined;

  /**
   * @param name a URL path segment of letters, digits and `. _ ~ -`
   * @throws {TypeError} for an invalid name or option
   */
  constructor(name: string, options: PosternOptions = {}) {
    const resolved = resolveOptions(name, options, process.env);
    const router = new Router<Handler>();
    const { loadShedding } = resolved;
    const story = new Story(name, resolved.logger);
    const { log: logger } = story;
    const metrics = new ServiceMetrics(router.methods, resolved.durationBuckets, logger);
    const telling = { observe: metrics.observeCall, note: story.note };
    const calls = { ...resolved, ...telling, userAgent: formatUserAgent(resolved) };
    const services = new ServiceClients(serviceUrlsOf(resolved.settings), calls);
    const stop = new AbortController();
    const serving = { ...resolved, logger, services, story, closing: stop.signal, spanExport: null };
    const memoryPercent = (): number => metrics.sampler.read().proc_rss_mem_perc ?? 0;
    const overload = loadShedding && new Overload(loadShedding, metrics.ownRegistry, logger, memoryPercent);
    const routes = new CompiledRoutes(router, overload, resolved.validateResponses);
    const slowClients = new SlowClients(resolved.sendTimeout);
    const accessLog = resolved.accessLog ? [new AccessLog(logger, resolved.accessLog === 'all')] : [];
    const observers = [metrics.requests, new StoryObserver(story), ...accessLog];
    const createListener = (of: CompiledRoutes): Listener => new Listener(of, serving, observers, slowClients);
    const listener = createListener(routes);
    const monitor = resolved.monitor && createListener(new CompiledRoutes(new Router(), null, false));
    const jobs = new Jobs(serving, metrics.observeJob);
    const tasks = new Tasks(monitor === null ? [listener] : [listener, monitor], jobs);
    const health = new Health(name, resolved.version, logger);
    metrics.describe(name, resolved.version, tasks, health);
    super(routes, '');

    this.name = name;
    this.version = resolved.version;
    this.settings = resolved.settings;
    this.errorCodes = resolved.errorCodes;
    this[OPENAPI] = { extras: resolved.openapi, sent: resolved.validateResponses === 'output' ? 'output' : 'input' };
    this.router = router;
    this.log = bindLogger(logger, {});
    this.closing = stop.signal;
    // Each open stream may listen; Node.js 20 would warn of a leak from the eleventh listener on.
    setMaxListeners(0, this.closing);
    this.health = health;
    this.#options = serving;
    this.#stop = stop;
    this.#tasks = tasks;
    this.#metrics = metrics;
    this.#overload = overload;
    this.#monitor = monitor;
    this.#listener = listener;
    this.server = listener.wire.server;
    this.handler = listener.wire.handle;

    if (!resolved.attachMonitorEndpoints) return;
    addMonitoringEndpoints(name, router, monitor && monitor.routes.router, {
      ...serving,
      services: services.pinged,
      app: this,
      health,
      metrics,
      tasks,
      exchanges: listener.wire.exchanges,
      sendPing: (request) => services.ping(request),
    });
  }

  /** Metrics of this application; a registry of its own. */
  get metrics(): Registry {
    return this.#metrics.registry;
  }

  /**
   * Adds middleware around every request that could be parsed: 404, 405, OPTIONS and the monitoring endpoints
   * included.
   * @throws {TypeError} for anything but one middleware
   * @example app.use(connect(helmet()));
   */
  override use(middleware: Middleware): this {
    assertMiddleware(middleware, arguments.length);
    this.#listener.routes.use(middleware);
    this.#monitor?.routes.use(middleware);
    return this;
  }

  /**
   * Answers the requests of a server that someone else created, and the requests that it could not parse.
   *
   * @throws {TypeError} for an unknown or invalid option, and for a server that serves this application already
   */
  attach(server: Server, options: ScopeOptions = {}): this {
    assertOptions('attach()', options, SCOPE);
    this.#listener.wire.attach(server, options);
    const warn = (): void => {
      const warning = 'nothing can reach the metrics; call listen(), which opens the listener of the option monitor';
      if (this.#opening === undefined) logSafely(this.#options.logger, 'warn', options, warning);
    };
    if (this.#monitor !== null && server.listening) warn();
    else if (this.#monitor !== null) server.once('listening', warn);
    return this;
  }

  /**
   * Lets a listener (an Express application, a proxy) answer every request below a prefix that no route answers. Its
   * `req.url` has no prefix, `req.originalUrl` is whole. A listener with a method `handle` (an application) gets `next`,
   * too: `next()` is the 404. The public does not reach it.
   *
   * @throws {TypeError} for a prefix with a parameter or a trailing slash, and for a prefix that is mounted already
   */
  mount(prefix: string, listener: (req: IncomingMessage, res: ServerResponse) => unknown): this;
  mount(prefix: string, application: ConnectMiddleware & { readonly handle: (...args: never[]) => unknown }): this;
  mount(prefix: string, listener: ConnectMiddleware): this {
    this.#listener.routes.mount(prefix, listener);
    return this;
  }

  /** Counts a promise as an active task until it settles; a rejection is logged. Gives the promise back. */
  track<T extends PromiseLike<unknown>>(promise: T): T {
    this.#tasks.track(promise, (err) => logSafely(this.#options.logger, 'error', { err }, 'tracked task failed'));
    return promise;
  }

  /**
   * Runs work that is not a request: a message, a timer, a batch. It has an id, a log, and calls that pass on the trace
   * of `headers`. It counts as an active task and in `job_duration_seconds`, and a drain waits for it. A failure is
   * logged, so nobody has to await the promise.
   *
   * @param name of this kind of work, such as `orders.placed`; it is a label of the metric
   * @returns what the function returns; rejects with what it throws, and with a 503 once `closing` has aborted
   * @throws {TypeError} for a wrong argument
   *
   * @example
   * consumer.on('message', ({ headers, order }) =>
   *   app.job('orders.placed', { headers }, (job) => job.service('billing').post('/invoices', { json: order })),
   * );
   */
  job<T>(name: string, run: JobFunction<T>): Promise<T>;
  job<T>(name: string, options: JobOptions | undefined, run: JobFunction<T>): Promise<T>;
  job<T>(name: string, ...rest: [JobFunction<T>] | [JobOptions | undefined, JobFunction<T>]): Promise<T> {
    const [options = {}, run] = rest.length === 1 ? [undefined, rest[0]] : rest;
    const done = this.#tasks.jobs.run(name, options, run);
    this.#tasks.track(done, () => undefined);
    return done;
  }

  /**
   * A client for another service, outside of any request.
   *
   * @throws {TypeError} when no connection of that name is configured
   * @example const { body } = await app.service('billing').get('/invoices/7');
   */
  service(name: string): ServiceClient {
    return this.#options.services.client(name);
  }

  /** Runs once while the application closes, after its requests are done: the place to close a database. */
  onClose(hook: () => unknown): this {
    if (typeof hook !== 'function') throw new TypeError(`onClose() got ${show(hook)}; give a function: () => pool.end()`);
    this.#closeHooks.push(hook);
    return this;
  }

  /** Listens on a Unix socket. */
  listen(options: PathOptions): Promise<ListeningOnPath & { readonly path: string }>;
  /** Listens on a socket that the parent process has opened. */
  listen(options: DescriptorOptions): Promise<Listening | ListeningOnPath>;
  // Last: of several overloads, the compiler explains a mistake by the last one.
  /**
   * Starts to listen: on a port of a host, by default 8000 on all interfaces, on each address of `localhost`, on a Unix
   * socket (`path`), or on a socket that the parent process has opened (`fd`).
   *
   * @throws {TypeError} for an unknown or invalid option, and if it listens already
   * @throws {Error} with the server's code, such as `EADDRINUSE`, and a message with the address and a remedy
   * @example const { url } = await app.listen({ port: 0 });
   */
  listen(options?: ListenOptions): Promise<Listening>;
  async listen(options: Where = {}): Promise<Listening | ListeningOnPath> {
    if (arguments.length > 1) throw new TypeError('listen() takes no callback; write const { url } = await app.listen()');
    assertWhere('listen()', options);
    return this.#listen(options, options.port === undefined ? 'the default' : 'the option port');
  }

  async #listen({ scope, ...where }: Where, from: string): Promise<Listening | ListeningOnPath> {
    if (this.#closing !== undefined) throw new Error('the application is closed; make a new one');
    if (this.#opening !== undefined)
      throw new TypeError('the application listens already; call listen() or run() once, or create another application');
    const opening = (this.#opening = this.#open({ ...withPort(where), scope }, from));
    opening.catch(() => (this.#opening = undefined));
    const listening = await opening;
    // Later: setting up the measuring must not delay the first requests.
    setTimeout(() => this.#closing ?? this.#metrics.watch(), WATCH_DELAY_MS).unref();
    logSafely(this.#options.logger, 'info', listening, 'listening');
    if (scope === 'public' && this.#monitor === null && this.#options.attachMonitorEndpoints) {
      const warning = 'nothing can reach the monitoring endpoints; set the option monitor, or MONITOR_PORT';
      logSafely(this.#options.logger, 'warn', { scope }, warning);
    }
    return listening;
  }

  async #open(where: Where, from: string): Promise<Listening | ListeningOnPath> {
    const signals = ['', '_TRACES', '_LOGS', '_METRICS'];
    const isMeant = signals.some((signal) => process.env[`OTEL_EXPORTER_OTLP${signal}_ENDPOINT`]);
    const isExported = isMeant && this.#options.tracing !== false;
    const loop = this.#options.diagnostics === null ? undefined : await import('../process/blocked-loop.js');
    const otlp = isExported ? await import('../otlp/export.js') : undefined;
    try {
      // The listener for monitoring first, so that a start can be watched. If one cannot be opened, the other may be.
      const monitor = await this.#monitor?.open(this.#options.monitor ?? {}, 'monitor.port or MONITOR_PORT');
      const listening = { ...(await this.#listener.open(where, from)), ...(monitor && { monitor }) };
      const log = defaultLoggerOf(this.#options.logger);
      this.#closeExport = otlp?.startExport(this.#options, this.metrics, log, process.env);
      this.#stopWatching = loop?.watchLoop(
        (by) => logSafely(this.#options.logger, 'warn', by, 'event loop blocked'),
        (err) => logSafely(this.#options.logger, 'warn', { err }, 'event loop is not watched'),
      );
      return listening;
    } catch (error) {
      await Promise.all([this.#listener.wire.revoke(), this.#monitor?.wire.revoke()]);
      throw error;
    }
  }

  /**
   * Sends a request to this application in memory, through the real HTTP parser.
   *
   * @param pathOrUrl a path, `/users?page=2`, or a URL
   * @param init as for `fetch`
   * @returns the response, whatever its status
   * @throws {TypeError} for neither a path nor a URL
   * @example const { status } = await app.request('/users/7', { headers: { accept: 'application/json' } });
   */
  async request(pathOrUrl: string | URL, init: RequestInit = {}): Promise<Response> {
    // Fetch takes null for an empty object.
    const given = init ?? {};
    const { body } = given;
    const isStreamed = typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
    const url = String(pathOrUrl).replace(/^(?=\/)/, 'http://localhost');
    if (!URL.canParse(url))
      throw new TypeError(`request() got ${show(pathOrUrl)}; give a path that begins with /, or a URL`);
    const request = createRequest(url, isStreamed && !('duplex' in given) ? { duplex: 'half', ...given } : given);
    return requestInMemory(this.server, request, isStreamed);
  }

  /** Drains and closes; calling it again waits for the first time. @throws {TypeError} for a wrong option */
  async close(options: CloseOptions = {}): Promise<void> {
    assertOptions('close()', options, CLOSE);
    await (this.#closing ??= this.#drain(options));
  }

  /** Runs on a Unix socket. */
  run(options: PathOptions & CloseOptions): Promise<ListeningOnPath & { readonly path: string }>;
  /** Runs on a socket that the parent process has opened. */
  run(options: DescriptorOptions & CloseOptions): Promise<Listening | ListeningOnPath>;
  /**
   * Listens, by default on `PORT` and `HOST` of the environment, and drains on SIGTERM or SIGINT. The process then
   * exits with 0, or 1 if something had to be cut off. A second signal exits at once, but not within 500 ms of the
   * first.
   *
   * Default of `delay`: `DRAIN_DELAY` from the environment, else 5,000 ms for SIGTERM, because a load balancer still
   * sends requests for seconds. 0 for SIGINT, and for SIGTERM if a person runs the service: stderr is a terminal, or
   * `node --watch` or `tsx watch` restarts the service, and `KUBERNETES_SERVICE_HOST` is not set.
   *
   * An uncaught exception or an unhandled rejection, if nothing else in the process listens for it, is logged at error
   * with the requests in flight. These have a second to end; then the process exits with 1.
   *
   * @throws {TypeError} when `PORT` is not a port or `DRAIN_DELAY` not a time, or for an unknown or invalid option
   * @example await app.run({ port: 8000, delay: 5_000 });
   */
  run(options?: ListenOptions & CloseOptions): Promise<Listening>;
  async run(options: Where & CloseOptions = {}): Promise<Listening | ListeningOnPath> {
    assertWhere('run()', options, CLOSE);
    const { env } = process;
    const { timeout, delay = numberOf(env, 'DRAIN_DELAY', TIME), ...given } = options;
    const { port = numberOf(env, 'PORT', PORT), host = env['HOST'] || undefined } = options;
    const from = options.port !== undefined ? 'the option port' : port === undefined ? 'the default' : 'PORT';
    const where = given.path === undefined && given.fd === undefined ? { ...given, port, host } : given;
    // Before it listens: a signal may follow the first connection, or the line that says where it listens.
    endWithProcess({
      drain: (signal) => {
        if (this.#closing === undefined) logSafely(this.#options.logger, 'warn', { signal }, 'draining');
        return (this.#closing ??= this.#drain({ delay: delay ?? drainDelayOf(signal, env), timeout }));
      },
      fail: (thrown, message) => this.#fail(thrown, message),
    });
    return this.#listen(where, from).catch((error: unknown) => {
      // A mistake in the program needs its stack, a port in use does not.
      if (!(error instanceof Error && 'code' in error)) throw error;
      this.#logLast({ code: error.code }, error.message, error.message);
      process.exit(1);
    });
  }

  /** Logs what ends the process with the requests in flight, which have a moment to end. */
  #fail(err: unknown, message: string): Promise<unknown> {
    this.#logLast({ err, ...describeInFlight(this.#listener.wire.exchanges) }, message, err);
    if (this.#closing !== undefined) return within(LAST_MOMENT_MS, this.#closing);
    return (this.#closing = this.#drain({ timeout: LAST_MOMENT_MS }));
  }

  /** Logs why the process ends. Without a logger it would end without a word. */
  #logLast(entry: object, message: string, otherwise: unknown): void {
    if (isSilent(this.#options.logger, 'error')) console.error(otherwise);
    // Unlike other lines about a failed call, this one has its stack: nobody waited for that call.
    else this.#options.logger.error(entry, message);
  }

  /** Finishes the work in flight, then closes the listeners. @returns whether everything in flight could finish */
  async #drain({ delay = 0, timeout = DRAIN_TIMEOUT_MS }: CloseOptions): Promise<boolean> {
    const { logger, services } = this.#options;
    const tasks = this.#tasks;
    this.health.drain();
    this.#listener.wire.beginDrain();
    // A server that is about to listen can't be told to stop before it does.
    await this.#opening?.catch(() => undefined);
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(delay, MAX_TIMEOUT_MS)));
    this.#stop.abort();
    const startedAtMs = monotonicNow();
    const leftMs = (): number => Math.max(0, timeout - (monotonicNow() - startedAtMs));
    const cut = await this.#listener.wire.close(timeout);
    // Only now: a request in flight may have started more of this work.
    await within(leftMs(), tasks.settled());
    const finished = cut.size === 0 && tasks.tracked === 0;
    if (!finished) {
      const jobs = tasks.jobs.active;
      const entry = { ...describeInFlight(cut), jobs, tracked: tasks.tracked - jobs, timeout_ms: timeout };
      logSafely(logger, 'warn', entry, 'cut off what took longer than the timeout of the drain');
    }
    tasks.jobs.cut();
    const hasClosed = await runCloseHooks(this.#closeHooks, Math.max(MIN_HOOK_MS, leftMs()), logger);
    this.#monitor?.wire.beginDrain();
    await this.#monitor?.wire.close(LAST_SCRAPE_MS);
    await this.#closeExport?.();
    this.#stopWatching?.();
    services.close();
    this.#metrics.close();
    this.#overload?.close();
    return hasClosed && finished;
  }
}
