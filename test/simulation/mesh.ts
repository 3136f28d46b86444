/** The mesh that carries a plan out: services of several instances, their clients, and what goes wrong. */

import { subscribe } from 'node:diagnostics_channel';
import type { CallTraceMessage, Context, Postern, ServiceClient, ServiceRequestOptions } from 'postern';
import { breakAll, createNetwork, Instance, listenInMemory, network } from './network.js';
import { worksOf, type Fault, type Plan, type Work } from './scenarios.js';
import { createWorld, OUTSIDE, world, type Details } from './world.js';

/** How long, in ms, a drain serves on, and then waits. */
const DRAIN = { delay: 4_000, timeout: 8_000 };
const CLIENTS = 3;
/** When requests and faults begin. */
const START_MS = 5_000;

// Each attempt of a call has a name of its own, which its server sees.
subscribe('tracing:postern.call:start', (message) => {
  const { headers, path, service, attempt } = message as CallTraceMessage;
  headers['x-attempt'] = `a${world.log.length}`;
  world.write('attempt', path.replace('/do/', ''), { uid: headers['x-attempt'], service, attempt });
});
subscribe('tracing:postern.call:asyncEnd', (message) => {
  const { headers, path, statusCode, error } = message as CallTraceMessage;
  world.write('ended', path.replace('/do/', ''), { uid: headers['x-attempt'], statusCode, ...failureOf(error) });
});

/** One mesh in a world of its own. */
export class Mesh {
  readonly #postern: typeof import('postern');
  readonly #plan: Plan;
  readonly #works: ReadonlyMap<string, Work>;
  /** When each place of the pool is free again. */
  readonly #pool: number[];

  constructor(postern: typeof import('postern'), plan: Plan) {
    this.#postern = postern;
    this.#plan = plan;
    this.#works = new Map(worksOf(plan).map((work) => [work.id, work]));
    this.#pool = Array.from({ length: plan.pool ?? 0 }, () => 0);
    createWorld(plan.seed);
    createNetwork();
  }

  /** Carries the plan out, closes everything, and logs what is left. */
  async run(): Promise<void> {
    const { services, requests, faults } = this.#plan;
    for (const { name, instances } of services) for (let i = 0; i < instances; i += 1) this.#start(name, 0);
    const clients = Array.from({ length: CLIENTS }, (_, i) => this.#create(`client-${i}`, 'client'));
    for (const { at, client, patience, work } of requests) {
      const host = clients[client] as Instance;
      world.at(START_MS + at, () => void this.#send(host.app, work, patience), host);
    }
    for (const fault of faults) world.at(START_MS + fault.at, () => this.#happen(fault));
    const last = [...requests.map(({ at, patience }) => at + patience), ...faults.map(({ at, ms }) => at + ms)];
    await world.run(START_MS + Math.max(...last) + 60_000);
    const living = [...network.instances, ...clients].filter(({ hasCrashed }) => !hasCrashed);
    for (const running of living) void this.#close(running, { timeout: 1_000 });
    await world.run(world.now + 120_000);
    for (const host of living) world.on(host, () => world.write('left', host.name, countersOf(host.app)));
    const sockets = [...network.open].filter(({ host }) => !host.hasCrashed).length;
    world.write('end', '', { sockets, timers: world.pending, ms: network.oldestMs });
  }

  #create(name: string, service: string): Instance {
    const all = this.#plan.services.map((each) => `${each.name}=http://${each.name}`);
    const next = (all.findIndex((each) => each.startsWith(`${service}=`)) + 1) % all.length;
    const settings = { SERVICE_CONNECTIONS: service === 'client' ? all : all.slice(next, next + 1) };
    // Node's own timers for slow requests run in real time; nobody here sends half a request.
    const timeouts = { requestTimeout: 0, headersTimeout: 0, maxConnectionAge: this.#plan.maxConnectionAge ?? 60_000 };
    const { Postern } = this.#postern;
    return new Instance(name, service, () => new Postern(service, { logger: false, settings, ...timeouts }));
  }

  #start(service: string, noticeMs: number): void {
    const running = this.#create(`${service}-${network.instances.length}`, service);
    network.instances.push(running);
    const serve = (ctx: Context<{ readonly id: string }>): Promise<unknown> => this.#serve(ctx);
    running.app.get('/do/:id', serve).post('/do/:id', serve);
    listenInMemory(running.app.server);
    void world.on(running, async () => {
      await running.app.listen();
      world.write('ready', running.name);
      announce(running, true, noticeMs);
    });
  }

  async #serve(ctx: Context<{ readonly id: string }>): Promise<unknown> {
    const work = this.#works.get(ctx.params.id) as Work;
    const { 'x-attempt': sent, 'x-parent': parent, 'x-envoy-expected-rq-timeout-ms': deadline } = ctx.headers;
    const uid = `h${world.log.length}`;
    const ms = deadline === undefined ? undefined : Number(deadline);
    world.write('run', work.id, { uid, sent: String(sent), parent: parent?.toString(), method: work.method, ms });
    ctx.signal.addEventListener('abort', () => world.write('gone', work.id, { uid }));
    try {
      await world.sleep(this.#take(work.ms));
      if (work.chunks !== undefined && work.calls.length === 0) return this.#stream(work);
      for (const call of work.calls) {
        const client = ctx.service(call.service);
        const headers = { 'x-parent': uid };
        if (call.chunks !== undefined) return await client.fetch(`/do/${call.id}`, { headers });
        const from = world.now;
        let end: Details = {};
        try {
          end = await this.#ask(client, call, { headers });
        } catch (error) {
          end = failureOf(error);
          if (call.optional !== true) throw error;
        } finally {
          world.write('called', call.id, { uid, from, ...end });
        }
      }
      if (work.fails !== undefined) throw this.#failure(work.fails);
      return { id: work.id };
    } finally {
      world.write('done', work.id, { uid });
    }
  }

  /** Takes the place in the pool that is free first. @returns how long, in ms, the work takes with the wait for it */
  #take(ms: number): number {
    const place = this.#pool.indexOf(Math.min(...this.#pool));
    if (place === -1) return ms;
    const end = Math.max(world.now, this.#pool[place] ?? 0) + ms;
    this.#pool[place] = end;
    return end - world.now;
  }

  #failure(kind: NonNullable<Work['fails']>): Error {
    const { ApiError, HttpError, defineErrorCodes } = this.#postern;
    const { own: errorCode } = defineErrorCodes({ own: 20_001 });
    if (kind === 'api') return new ApiError('own', { statusCode: 409, errorCode });
    if (kind === 'bug') return new TypeError('bug');
    return new HttpError(503, 'not now', kind === 'late' ? { headers: { 'retry-after': '1' } } : {});
  }

  async *#stream({ id, chunks = 0, fails }: Work): AsyncGenerator<string> {
    for (let i = 0; i < chunks; i += 1) {
      if (fails !== undefined && i === chunks >> 1) throw new Error('broken');
      yield `${id} ${i}\n`;
      await world.sleep(20);
    }
  }

  /** Asks a service for some work. @returns what the reply has, for the log */
  async #ask(client: ServiceClient, work: Work, more: ServiceRequestOptions): Promise<Details> {
    const { id, service, method, timeout, retry, chunks, ping } = work;
    if (chunks !== undefined) {
      const response = await client.fetch(`/do/${id}`, more);
      const text = await response.text();
      return response.ok ? { count: text.split('\n').length - 1 } : { statusCode: response.status };
    }
    const options = { timeout, retry, ...more };
    if (ping === undefined) return { body: (await client[method]<{ id: string }>(`/do/${id}`, options)).body.id };
    return { count: depthOf((await client.get(`/${service}/ping/`, { ...options, query: { depth: ping } })).body) };
  }

  async #send(app: Postern, work: Work, patience: number): Promise<void> {
    world.write('send', work.id, { ms: patience });
    const impatience = new AbortController();
    const timer = world.at(world.now + patience, () => impatience.abort());
    try {
      world.write('got', work.id, await this.#ask(app.service(work.service), work, { signal: impatience.signal }));
    } catch (error) {
      world.write('got', work.id, impatience.signal.aborted ? { error: 'impatient' } : failureOf(error));
    }
    timer.isCancelled = true;
  }

  #happen({ kind, service, instance, ms, other }: Fault): void {
    const ready = network.instances.filter((each) => each.service === service && each.isReady);
    const running = ready[instance % ready.length];
    const end = network.instances.find((each) => each.service === other)?.name ?? other;
    world.write(kind, running?.name ?? service, { ms, other: end });
    if (kind === 'start') this.#start(service, noticeMs());
    else if (running === undefined) return;
    else if (kind === 'stop') void this.#drain(running);
    else if (kind === 'pause') running.pausedUntil = Math.max(running.pausedUntil, world.now + ms);
    else if (kind === 'cut') network.cuts.push({ between: [running.name, String(end)], until: world.now + ms });
    else {
      running.hasCrashed = true;
      breakAll(running, kind === 'outage');
      announce(running, false, noticeMs());
      world.at(world.now + ms, () => this.#start(service, noticeMs()));
    }
  }

  async #drain(running: Instance): Promise<void> {
    world.write('drain', running.name, { until: world.now + DRAIN.delay + DRAIN.timeout });
    announce(running, false, noticeMs());
    await this.#close(running, DRAIN);
  }

  async #close(running: Instance, options: { readonly timeout: number }): Promise<void> {
    await world.on(running, () => running.app.close(options));
    const sockets = [...network.open].filter(({ host }) => host === running).length;
    world.write('closed', running.name, { sockets });
  }
}

/** How long, in ms, a balancer takes to notice. */
const noticeMs = (): number => 500 + 2_500 * world.random.next();

/** Has the balancer learn, late, whether an instance is ready. */
function announce(instance: Instance, isReady: boolean, ms: number): void {
  instance.isReady = isReady;
  world.at(world.now + ms, () => (instance.isKnown = instance.isReady), OUTSIDE);
}

function failureOf(error: unknown): Details {
  if (error === undefined) return {};
  const { statusCode, errorCode } = error as { statusCode?: number; errorCode?: { name: string; value: number } };
  return { statusCode, code: errorCode?.name, value: errorCode?.value, error: String(error) };
}

/** How many levels a ping document has. */
function depthOf(body: unknown): number {
  const { response } = body as { response?: unknown };
  if (typeof response !== 'object' || response === null) return 0;
  return 1 + Math.max(0, ...Object.values(response).map((entry) => depthOf((entry as { response: unknown }).response)));
}

function countersOf({ metrics }: Postern): Details {
  const lines = metrics.expose().split('\n');
  const sumOf = (start: RegExp): number =>
    lines.filter((line) => start.test(line)).reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  return {
    tasks: sumOf(/^active_task_count\b/),
    attempts: sumOf(/^service_request_duration_seconds_count\b/),
    requests: sumOf(/^http_request_duration_seconds_count\b.*route="\/do\/:id"/),
  };
}
