/** A plan, and the mesh that carries it out: services of several instances, their clients, and what goes wrong. */

import { tracingChannel } from 'node:diagnostics_channel';
import type { Context, Postern } from 'postern';
import { listenInMemory, Network, replaceConnections, type Instance } from './network.js';
import { enter, World, type Host } from './world.js';

/** What a service does for one request, and what it asks of others for it. */
export interface Work {
  readonly id: string;
  readonly service: string;
  readonly method: 'GET' | 'POST';
  readonly ms: number;
  /** An error of the service's own, one of the server's (`late`: with Retry-After), or a bug. */
  readonly fails?: 'api' | 'http' | 'late' | 'bug' | undefined;
  readonly timeout: number;
  readonly retry: number;
  /** Whether the reply does without what this call would have returned. */
  readonly optional?: boolean | undefined;
  readonly calls: readonly Work[];
  /** A stream of so many chunks. */
  readonly chunks?: number | undefined;
}

/** What a client sends. */
export interface Request {
  readonly at: number;
  readonly client: number;
  readonly patience: number;
  readonly work: Work;
  /** A ping of this depth in place of the work. */
  readonly ping?: number | undefined;
}

export interface Fault {
  readonly at: number;
  readonly kind: 'update' | 'crash' | 'outage' | 'pause' | 'cut' | 'start' | 'stop';
  readonly service: string;
  /** Which of its instances, counted as they were started. */
  readonly instance: number;
  readonly ms: number;
  /** The other end of a link. */
  readonly other?: string | undefined;
}

export interface Plan {
  readonly scenario: string;
  readonly seed: number;
  readonly services: readonly {
    readonly name: string;
    readonly instances: number;
    readonly knows: readonly string[];
    readonly pool?: number | undefined;
  }[];
  readonly clients: number;
  readonly requests: readonly Request[];
  readonly faults: readonly Fault[];
  readonly maxConnectionAge?: number | undefined;
}

/** How long, in ms, a drain serves on, and then waits. */
export const DRAIN = { delay: 4_000, timeout: 8_000 };
/** How long, in ms, a balancer takes to notice. */
const NOTICE_MS = [500, 3_000] as const;

interface Running extends Instance {
  readonly app: Postern;
  isStopped: boolean;
}

let network: Network;
replaceConnections(() => network);

/** One mesh in one world. */
export class Mesh {
  readonly world: World;
  readonly network: Network;
  readonly instances: Running[] = [];
  readonly clients: { readonly host: Host; readonly app: Postern }[] = [];
  readonly #postern: typeof import('postern');
  readonly #plan: Plan;
  readonly #work = new Map<string, Work>();
  readonly #attempts = new WeakMap<object, string>();
  readonly #pools = new Map<Host, { used: number; readonly waiting: (() => void)[] }>();

  constructor(postern: typeof import('postern'), plan: Plan) {
    this.#postern = postern;
    this.#plan = plan;
    this.world = new World(plan.seed);
    enter(this.world);
    this.network = network = new Network(this.world);
    const add = (work: Work): void => {
      this.#work.set(work.id, work);
      work.calls.forEach(add);
    };
    for (const { work } of plan.requests) add(work);
  }

  /** Carries the plan out, and closes everything. */
  async run(): Promise<void> {
    const { world } = this;
    const stop = this.#watchAttempts();
    for (const { name, instances } of this.#plan.services) for (let i = 0; i < instances; i += 1) this.#start(name, 0);
    for (let i = 0; i < this.#plan.clients; i += 1) this.#startClient(i);
    await world.run(5_000);
    for (const request of this.#plan.requests) {
      const { host, app } = this.clients[request.client % this.clients.length] as { host: Host; app: Postern };
      world.at(5_000 + request.at, () => void world.on(host, () => this.#send(app, request)), host);
    }
    for (const fault of this.#plan.faults) world.at(5_000 + fault.at, () => this.#happen(fault), undefined);
    const last = Math.max(
      0,
      ...this.#plan.requests.map(({ at, patience }) => at + patience),
      ...this.#plan.faults.map(({ at, ms }) => at + ms),
    );
    await world.run(5_000 + last + 60_000);
    for (const running of [...this.instances, ...this.clients]) {
      if (!running.host.hasCrashed)
        world.on(
          running.host,
          () =>
            void running.app
              .close({ timeout: 1_000 })
              .then(() => world.write('closed', running.host.name, { sockets: this.network.countOf(running.host) })),
        );
    }
    await world.run(world.now + 120_000);
    stop();
  }

  #start(service: string, noticeMs: number): Running {
    const { world } = this;
    const plan = this.#plan.services.find(({ name }) => name === service) as Plan['services'][number];
    const host: Host = { name: `${service}-${this.instances.length}`, service, pausedUntil: 0, hasCrashed: false };
    const app = world.on(host, () => this.#create(service, plan.knows));
    const running: Running = { host, app, server: app.server, isStopped: false };
    this.instances.push(running);
    app.get('/do/:id', (ctx) => this.#serve(ctx)).post('/do/:id', (ctx) => this.#serve(ctx));
    listenInMemory(app.server);
    world.on(host, () => void app.listen().then(() => {
      world.write('ready', host.name);
      network.announce(service, running, true, noticeMs);
    }));
    return running;
  }

  #create(name: string, knows: readonly string[]): Postern {
    const { maxConnectionAge = 60_000 } = this.#plan;
    const { Postern } = this.#postern;
    // Node's own timers for slow requests run in real time; nobody here sends half a request.
    const timeouts = { requestTimeout: 0, headersTimeout: 0, maxConnectionAge };
    return new Postern(name, {
      logger: false,
      settings: { SERVICE_CONNECTIONS: knows.map((other) => `${other}=http://${other}`) },
      ...timeouts,
    });
  }

  #startClient(index: number): void {
    const host: Host = { name: `client-${index}`, service: 'client', pausedUntil: 0, hasCrashed: false };
    this.clients.push({
      host,
      app: this.world.on(host, () =>
        this.#create(
          'client',
          this.#plan.services.map(({ name }) => name),
        ),
      ),
    });
  }

  async #serve(ctx: Context<{ readonly id: string }>): Promise<unknown> {
    const { world } = this;
    const { id } = ctx.params;
    const uid = String(ctx.headers['x-attempt']);
    const header = ctx.headers['x-envoy-expected-rq-timeout-ms'];
    const work = this.#work.get(id) as Work;
    const { ApiError, HttpError, defineErrorCodes } = this.#postern;
    world.write('run', id, {
      uid,
      call: ctx.headers['x-call'],
      method: ctx.method,
      deadlineMs: header === undefined ? undefined : Number(header),
    });
    ctx.signal.addEventListener('abort', () => world.write('left', uid));
    const leave = await this.#enter(work.service);
    await world.sleep(work.ms);
    try {
      if (work.chunks !== undefined && work.calls.length === 0) return this.#stream(work);
      for (const call of work.calls) {
        const name = `${uid} ${call.id}`;
        world.write('call', name, { parent: uid });
        try {
          const client = ctx.service(call.service);
          if (call.chunks !== undefined) return await client.fetch(`/do/${call.id}`, { headers: { 'x-call': name } });
          const options = { timeout: call.timeout, retry: call.retry, headers: { 'x-call': name } };
          const { body } = await (call.method === 'GET'
            ? client.get(`/do/${call.id}`, options)
            : client.post(`/do/${call.id}`, options));
          if ((body as { id: string }).id !== call.id) world.write('mixed up', call.id, { body });
        } catch (error) {
          if (!call.optional) throw error;
        } finally {
          world.write('called', name, { parent: uid });
        }
      }
      if (work.fails === 'api')
        throw new ApiError('own', { statusCode: 409, errorCode: defineErrorCodes({ own: 20_001 }).own });
      if (work.fails === 'http') throw new HttpError(503, 'not now');
      if (work.fails === 'late') throw new HttpError(503, 'not now', { headers: { 'retry-after': '1' } });
      if (work.fails === 'bug') throw new TypeError('bug');
      return { id };
    } finally {
      leave();
      world.write('done', id, { uid, aborted: ctx.signal.aborted });
    }
  }

  async *#stream({ id, chunks = 0, fails }: Work): AsyncGenerator<string> {
    for (let i = 0; i < chunks; i += 1) {
      if (fails !== undefined && i === chunks >> 1) throw new Error('broken');
      yield `${id} ${i}\n`;
      await this.world.sleep(20);
    }
  }

  /** Takes one of the connections that a service has to its database, if it has a pool. */
  async #enter(service: string): Promise<() => void> {
    const { pool } = this.#plan.services.find(({ name }) => name === service) ?? {};
    const { host } = this.world;
    if (pool === undefined || host === undefined) return () => undefined;
    const queue = this.#pools.get(host) ?? { used: 0, waiting: [] };
    this.#pools.set(host, queue);
    if (queue.used < pool) queue.used += 1;
    else await new Promise<void>((resolve) => queue.waiting.push(resolve));
    return () => {
      const next = queue.waiting.shift();
      if (next !== undefined) next();
      else queue.used -= 1;
    };
  }

  async #send(app: Postern, { work, patience, ping }: Request): Promise<void> {
    const { world } = this;
    const { id, service, method, timeout, retry } = work;
    world.write('send', id, { patience });
    const impatience = new AbortController();
    const timer = world.at(world.now + patience, () => impatience.abort());
    const options = { timeout, retry, signal: impatience.signal };
    try {
      const client = app.service(service);
      if (ping !== undefined) {
        const { body } = await client.get(`/${service}/ping/`, { ...options, query: { depth: String(ping) } });
        world.write('pong', id, { depth: depthOf(body) });
      } else if (work.chunks !== undefined) {
        const response = await client.fetch(`/do/${id}`, { signal: impatience.signal });
        const text = await response.text();
        if (response.ok) world.write('streamed', id, { lines: text.split('\n').length - 1 });
        else world.write('failed', id, { statusCode: response.status });
      } else {
        const { body } = await (method === 'GET'
          ? client.get(`/do/${id}`, options)
          : client.post(`/do/${id}`, options));
        world.write((body as { id: string }).id === id ? 'answered' : 'mixed up', id);
      }
    } catch (error) {
      const { statusCode, errorCode } = error as { statusCode?: number; errorCode?: { name: string; value: number } };
      world.write(
        'failed',
        id,
        impatience.signal.aborted
          ? { aborted: true }
          : {
              statusCode,
              code: errorCode?.name,
              value: errorCode?.value,
              error: statusCode === undefined ? String(error) : undefined,
            },
      );
    }
    timer.isCancelled = true;
  }

  #happen({ kind, service, instance, ms, other }: Fault): void {
    const { world } = this;
    const all = this.instances.filter(
      ({ host, isStopped }) => host.service === service && !host.hasCrashed && !isStopped,
    );
    const running = all[instance % Math.max(1, all.length)];
    world.write(kind, service, { host: running?.host.name, ms, other }, '');
    if (kind === 'start') this.#start(service, this.#notice());
    else if (kind === 'update') void this.#update(all);
    else if (running === undefined) return;
    else if (kind === 'stop') void this.#stop(running);
    else if (kind === 'pause') running.host.pausedUntil = world.now + ms;
    else if (kind === 'cut')
      network.cut(
        running.host.name,
        other?.startsWith('client')
          ? other
          : (this.instances.find(({ host }) => host.service === other)?.host.name ?? ''),
        ms,
      );
    else {
      running.host.hasCrashed = true;
      network.breakAll(running.host, kind === 'outage');
      network.announce(service, running, false, this.#notice());
      world.at(world.now + ms, () => void this.#start(service, this.#notice()), undefined);
    }
  }

  #notice(): number {
    const [least, most] = NOTICE_MS;
    return least + this.world.random.next() * (most - least);
  }

  async #update(old: readonly Running[]): Promise<void> {
    for (const running of old) {
      this.#start(running.host.service, this.#notice());
      await this.world.sleep(5_000);
      await this.#stop(running);
    }
  }

  async #stop(running: Running): Promise<void> {
    const { world } = this;
    running.isStopped = true;
    if (running.host.hasCrashed) return;
    world.write('drain', running.host.name, { until: world.now + DRAIN.delay + DRAIN.timeout });
    network.announce(running.host.service, running, false, this.#notice());
    await world.on(running.host, () => running.app.close(DRAIN));
    world.write('drained', running.host.name, { sockets: this.network.countOf(running.host) });
  }

  /** Gives each attempt of a call a name of its own, which its server sees. */
  #watchAttempts(): () => void {
    const { world } = this;
    let count = 0;
    const channel = tracingChannel('postern.call');
    const ended = (message: object): void => {
      const uid = this.#attempts.get(message);
      if (uid === undefined) return;
      this.#attempts.delete(message);
      const { statusCode, errorCode, error } = message as {
        statusCode?: number;
        errorCode?: { name: string };
        error?: { statusCode?: number };
      };
      world.write('ended', uid, { statusCode, code: errorCode?.name, failedWith: error?.statusCode });
    };
    const subscribers = {
      start: (message: { service: string; path: string; attempt: number; headers: Record<string, string> }) => {
        const uid = `a${(count += 1)}`;
        this.#attempts.set(message, uid);
        message.headers['x-attempt'] = uid;
        world.write('attempt', uid, {
          id: message.path.replace('/do/', ''),
          service: message.service,
          attempt: message.attempt,
        });
      },
      end: () => undefined, asyncStart: () => undefined, asyncEnd: ended, error: () => undefined,
    };
    channel.subscribe(subscribers as Parameters<typeof channel.subscribe>[0]);
    return () => void channel.unsubscribe(subscribers as Parameters<typeof channel.unsubscribe>[0]);
  }
}

/** How many levels a ping document has. */
function depthOf(body: unknown): number {
  const { response } = body as { response?: unknown };
  if (typeof response !== 'object' || response === null) return 0;
  return 1 + Math.max(0, ...Object.values(response).map((entry) => depthOf((entry as { response: unknown }).response)));
}
