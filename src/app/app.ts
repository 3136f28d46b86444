/**
 * An application: its routes, its monitoring endpoints, and its life from listening to closed.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { assertTimes, MAX_TIMEOUT_MS, within } from '../deadline.js';
import { Endpoints, type Endpoint } from '../pipeline/endpoint.js';
import type { Environment, Handler, Middleware } from '../http/context.js';
import { requestInMemory, type RequestInitLike } from '../http/in-memory.js';
import { attachListener, Connections, createHttpServer, type ServerLimits } from '../http/server.js';
import { logSafely, type Logger } from '../log.js';
import { ServiceDirectory, type ServiceClient } from '../mesh/service.js';
import { connectionsOf, type Settings } from '../mesh/settings.js';
import type { Registry } from '../metrics/registry.js';
import { Health } from '../monitor/health.js';
import { LoadShedder } from '../monitor/load-shedder.js';
import { ServiceMetrics } from '../monitor/metrics-endpoint.js';
import { createPing } from '../monitor/ping.js';
import { Tasks } from '../monitor/tasks.js';
import { resolveOptions, type PosternOptions } from './options.js';
import { Pipeline } from '../pipeline/pipeline.js';
import { RouteGroup } from './route-group.js';
import { Router } from '../routing/router.js';

/** Where to listen. */
export interface ListenOptions {
  /** 8000 unless given; 0 picks a free one. */
  port?: number;
  /** All interfaces unless given. */
  host?: string;
}

/** Where an application listens. */
export interface Listening {
  /** With the loopback address where it listens on all interfaces. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
}

/** How to drain, in ms. */
export interface CloseOptions {
  /** How long requests are still accepted while load balancers notice; 0 unless given. */
  delay?: number | undefined;
  /** How long what is in flight may take after that before it is cut; 10,000 unless given. */
  timeout?: number | undefined;
}

const SWEEP_MS = 100;

/** A microservice. */
export class Postern extends RouteGroup {
  readonly name: string;
  readonly version: string;
  readonly router: Router<Handler>;
  readonly health: Health;
  readonly settings: Settings;
  /** The `node:http` server; it listens after {@link listen}. */
  readonly server: Server;
  /** Handles requests of a `node:http` server that someone else made. */
  readonly handler: (req: IncomingMessage, res: ServerResponse) => void;

  readonly #logger: Logger;
  readonly #endpoints: Endpoints;
  readonly #pipeline: Pipeline;
  readonly #limits: ServerLimits;
  readonly #tasks: Tasks;
  readonly #services: ServiceDirectory;
  readonly #metrics: ServiceMetrics;
  readonly #shedder: LoadShedder | null;
  readonly #connections: Connections;
  readonly #closeHooks: (() => unknown)[] = [];
  #opening: Promise<void> | undefined;
  #closing: Promise<boolean> | undefined;

  /**
   * @param name a URL path segment of letters, digits and `. _ ~ -`
   * @throws {TypeError} for an invalid name or option
   */
  constructor(name: string, options: PosternOptions = {}) {
    const resolved = resolveOptions(name, options, process.env);
    const router = new Router<Handler, Endpoint>();
    const services = new ServiceDirectory(connectionsOf(resolved.settings));
    const { logger, bodyLimitBytes, parameterLimit, resolveAddress } = resolved;
    const env: Environment = { logger, bodyLimitBytes, parameterLimit, resolveAddress, services };
    const tasks = new Tasks(() => pipeline.active);
    const health = new Health(name, resolved.version, logger);
    const metrics = new ServiceMetrics({ service: name, version: resolved.version, tasks, health, methods: router.methods, logger });
    const { loadShedding } = resolved;
    const shedder = loadShedding === null ? null : new LoadShedder({ options: loadShedding, memoryPercent: () => metrics.sampler.read().rssPercent, logger });
    const endpoints = new Endpoints(router, metrics.requests, shedder);
    const pipeline = new Pipeline(endpoints, env, metrics.requests, resolved);
    super(endpoints, '', []);

    this.name = name;
    this.version = resolved.version;
    this.settings = resolved.settings;
    this.router = router;
    this.health = health;
    this.#logger = resolved.logger;
    this.#endpoints = endpoints;
    this.#pipeline = pipeline;
    this.#limits = resolved;
    this.#services = services;
    this.#tasks = tasks;
    this.#metrics = metrics;
    this.#shedder = shedder;
    this.server = createHttpServer(resolved);
    this.handler = (req, res) => pipeline.handle(req, res, false);
    this.#connections = new Connections(this.server);
    attachListener(this.server, pipeline, resolved);

    if (resolved.attachMonitorEndpoints) {
      const { maxPingDepth, pingTimeoutMs } = resolved;
      endpoints.addMonitor(`/${name}/health/`, () => health.answer());
      endpoints.addMonitor(`/${name}/metrics/`, (ctx) => metrics.answer(ctx));
      endpoints.addMonitor(`/${name}/ping/`, createPing({ directory: services, maxPingDepth, pingTimeoutMs, logger }));
    }
  }

  /** Metrics of this application; a registry of its own. */
  get metrics(): Registry {
    return this.#metrics.registry;
  }

  /** Adds middleware around every request that could be parsed: 404, 405, OPTIONS and the monitoring endpoints included. */
  override use(middleware: Middleware): this {
    if (typeof middleware !== 'function') throw new TypeError('middleware must be a function (ctx, next) => reply');
    this.#endpoints.use(middleware);
    return this;
  }

  /** Answers the requests of a server that someone else made, and those that it could not parse. */
  attach(server: Server): this {
    attachListener(server, this.#pipeline, this.#limits);
    return this;
  }

  /** Counts a promise as an active task until it settles; a rejection is logged. Gives the promise back. */
  track<T extends PromiseLike<unknown>>(promise: T): T {
    this.#tasks.track(promise, (reason) => logSafely(this.#logger, 'error', { err: reason }, 'tracked task failed'));
    return promise;
  }

  /**
   * A client for another service, outside of any request.
   *
   * @throws {TypeError} when no connection of that name is configured
   */
  service(name: string): ServiceClient {
    return this.#services.client(name);
  }

  /** Runs once while the application closes, after its requests are done: the place to close a database. */
  onClose(hook: () => unknown): this {
    this.#closeHooks.push(hook);
    return this;
  }

  /**
   * Starts to listen.
   *
   * @throws whatever the server raises, such as `EADDRINUSE`
   */
  async listen({ port = 8000, host }: ListenOptions = {}): Promise<Listening> {
    if (this.#closing !== undefined) throw new Error('the application is closed; make a new one');
    await (this.#opening = new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ port, host }, () => {
        this.server.off('error', reject);
        resolve();
      });
    }));
    // In a turn of its own: first the service is up.
    setImmediate(() => this.#metrics.sampler.start());
    return listeningOn(this.server.address() as AddressInfo);
  }

  /**
   * Sends a request to this application in memory, through the real HTTP parser.
   *
   * @param pathOrUrl a path, `/users?page=2`, or a URL
   * @param init as for `fetch`
   * @returns the response, whatever its status
   */
  request(pathOrUrl: string | URL, init?: RequestInitLike): Promise<Response> {
    return requestInMemory(this.server, pathOrUrl, init);
  }

  /** Drains and closes; calling it again waits for the first time. @throws {TypeError} for a time that is none */
  async close(options: CloseOptions = {}): Promise<void> {
    assertTimes({ delay: options.delay, timeout: options.timeout });
    await (this.#closing ??= this.#drain(options));
  }

  /**
   * Listens, with `PORT` and `HOST` of the environment unless given, and drains on SIGTERM or SIGINT: the process then
   * exits with 0, or 1 if something had to be cut. A second signal exits at once.
   *
   * @throws {TypeError} when `PORT` is no port, or a time is none
   */
  async run({ port = portOf(process.env['PORT']), host = process.env['HOST'], delay, timeout }: ListenOptions & CloseOptions = {}): Promise<Listening> {
    assertTimes({ delay, timeout });
    const listening = await this.listen({ ...(port === undefined ? {} : { port }), ...(host === undefined ? {} : { host }) });
    let signaled = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (signaled) process.exit(1);
      signaled = true;
      logSafely(this.#logger, 'warn', { signal }, 'draining');
      this.#closing ??= this.#drain({ delay, timeout });
      void this.#closing.then((clean) => process.exit(clean ? 0 : 1));
    };
    process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
    return listening;
  }

  /** @returns whether everything in flight could finish */
  async #drain({ delay = 0, timeout = 10_000 }: CloseOptions): Promise<boolean> {
    this.health.drain();
    this.#pipeline.closeConnections();
    // A server that is about to listen could not be told to stop.
    await this.#opening?.catch(() => undefined);
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(delay, MAX_TIMEOUT_MS)));
    // In a turn of its own: behind a reply that ends in this one, node:http takes a connection for idle.
    const stopped = new Promise<void>((resolve) => setImmediate(() => resolve(stopListening(this.server))));
    this.#connections.closeSilent();
    // A connection may become idle behind replies that were queued before the drain began.
    const sweep = setInterval(() => this.server.closeIdleConnections(), SWEEP_MS);
    await within(timeout, Promise.all([this.#pipeline.idle(), stopped]));
    clearInterval(sweep);
    const clean = this.#pipeline.active === 0;
    this.#connections.closeAll();
    await stopped;
    for (const hook of this.#closeHooks) {
      try {
        await hook();
      } catch (error) {
        logSafely(this.#logger, 'error', { err: error }, 'close hook failed');
      }
    }
    this.#services.close();
    this.#metrics.sampler.close();
    this.#shedder?.close();
    return clean;
  }
}

function listeningOn({ address, family, port }: AddressInfo): Listening {
  const host = address === '::' || address === '0.0.0.0' ? '127.0.0.1' : address;
  const authority = family === 'IPv6' && host.includes(':') ? `[${host}]` : host;
  return { url: `http://${authority}:${port}`, host: address, port };
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new TypeError(`PORT is ${JSON.stringify(text)}; give a number from 0 to 65535`);
  return port;
}

/** Resolves when the server has no connection left; at once for one that never listened. */
function stopListening(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve();
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
