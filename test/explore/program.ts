/** The explored program, once with Postern and once on bare `node:http`. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http';
import { Readable, type Duplex } from 'node:stream';
import type { Context, Logger, Postern } from 'postern';
import { hasBody, HANDLERS, methodOf, type Handler } from './alphabet.js';
import type { Run, Seen } from './run.js';
import { inVirtualTime, time } from './time.js';

export const [KEEP_ALIVE_MS, SEND_MS, REQUEST_MS] = [5000, 3000, 12_000];
export const LARGE = Buffer.alloc(200_000, 'L');
/** The chunks of a stream that waits for nothing. */
const QUICK = ['qui', 'ck'];
/** What an upgraded connection speaks. */
export const PROTOCOL = 'another protocol';

export interface Program {
  readonly server: Server;
  /** Counts requests under way; always 0 for bare `node:http`. */
  active(): number;
}

/** Events of a server that hand out a request. */
const EVENTS = new Set(['request', 'checkContinue', 'upgrade', 'connect']);
const requests = new Map<unknown, Seen>();
const own = new AsyncLocalStorage<Seen>();

/** Makes the requests of a run known to the programs; their `x-request-id` names them. */
export function enter(run: Run): void {
  for (const seen of run.seen) requests.set(`${run.id}.${seen.index}`, seen);
}

export function leave(run: Run): void {
  for (const { index } of run.seen) requests.delete(`${run.id}.${index}`);
}

/** Notes whether a place runs in the async context of its own request; one whose handler never ran may have none. */
function check(seen: Seen | undefined, place: string): void {
  const store = own.getStore();
  if (seen !== undefined && store !== seen && (store !== undefined || seen.ran > 0)) seen.foreign.push(place);
}

/** Puts a store around each request, where `node:http` emits it. */
function watch(server: Server): Server {
  const emit = server.emit.bind(server) as (...args: unknown[]) => boolean;
  server.emit = (...args: unknown[]) => {
    const [event, req, res] = args as [string, IncomingMessage | undefined, ServerResponse | undefined];
    const seen = EVENTS.has(event) ? requests.get(req?.headers['x-request-id']) : undefined;
    if (seen === undefined) return emit(...args);
    if (event !== 'upgrade') seen.emitted += 1;
    if (res instanceof ServerResponse) [seen.req, seen.res] = [req as IncomingMessage, res];
    return own.run(seen, () => emit(...args));
  };
  server.on('upgrade', (req: IncomingMessage, socket: Duplex) => {
    const seen = requests.get(req.headers['x-request-id']);
    if (seen !== undefined) begin(seen);
    socket.on('error', () => undefined).on('end', () => socket.end()).resume();
    const fields = `Connection: upgrade\r\nUpgrade: x\r\nx-n: ${seen?.index}`;
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n\r\n${PROTOCOL}`);
  });
  return server;
}

function begin(seen: Seen): void {
  seen.ran += 1;
  seen.ranAt = time.now;
  const before = seen.run.seen[seen.index - 1];
  const isSent = before === undefined || (before.res?.writableEnded === true && before.res.writableLength === 0);
  if (!isSent) seen.faults.push('a handler runs before the reply before it is sent');
  if (!seen.run.client.socket.writable) seen.faults.push('a handler begins on a connection that takes no reply');
}

/** A stream that holds something from the beginning, as one of a file does. */
function source(seen: Seen, fails: boolean): Readable {
  seen.sources += 1;
  let left = fails ? 1 : 3;
  const stream = new Readable({
    read() {
      check(seen, 'the source of a reply');
      time.set(() => {
        if (left > 0) stream.push('chunk');
        else if (fails) stream.destroy(new Error('the source failed'));
        else stream.push(null);
        left -= 1;
      }, 5);
    },
  });
  return stream.on('close', () => (seen.sources -= 1));
}

/** A stream that fails before its first byte. */
function spoiled(): Readable {
  return new Readable({ read() { this.destroy(new Error('spoiled')); } });
}

/** Every transition of the table of an exchange; true once it was taken. */
export async function watchTable(): Promise<Map<string, boolean>> {
  const transitions = new Map<string, boolean>();
  const { STATES } = await inVirtualTime(() => import('../../src/wire/exchange.js'));
  for (const [state, row] of Object.entries(STATES)) {
    for (const [event, next] of Object.entries(row)) {
      const transition = `${state}.${event}`;
      transitions.set(transition, false);
      Object.defineProperty(row, event, { get: () => (transitions.set(transition, true), next), enumerable: true });
    }
  }
  return transitions;
}

export async function posternProgram(): Promise<Program> {
  const { Postern, reply } = await inVirtualTime(() => import('postern'));
  const headers = ({ index }: Seen): { headers: Record<string, string> } => ({ headers: { 'x-n': String(index) } });
  const value = (seen: Seen): unknown => reply('value', headers(seen));
  const read = async (ctx: Context, seen: Seen): Promise<void> => {
    await ctx.bytes();
    check(seen, 'after the body');
  };
  const handle: Record<Handler, (ctx: Context, seen: Seen) => unknown> = {
    value: (ctx, seen) => (hasBody(seen.step) ? read(ctx, seen).then(() => value(seen)) : value(seen)),
    large: async (ctx, seen) => {
      if (hasBody(seen.step)) await read(ctx, seen);
      await time.sleep(5);
      check(seen, 'after a timer');
      return reply(LARGE, headers(seen));
    },
    stream: (ctx, seen) => reply(hasBody(seen.step) ? ctx.stream() : source(seen, false), headers(seen)),
    quick: (_, seen) => reply(Readable.from(QUICK), headers(seen)),
    failing: (_, seen) => reply(source(seen, true), headers(seen)),
    never: ({ signal }) => signal.aborted || new Promise((resolve) => signal.addEventListener('abort', resolve)),
    raw: async ({ raw: { res } }, seen) => {
      res.writeHead(200, { 'x-n': String(seen.index) }).write('ra');
      await time.sleep(5);
      res.end('w');
    },
    bulk: ({ raw: { res } }, seen) =>
      void res.writeHead(200, { 'x-n': String(seen.index), 'content-length': LARGE.length }).end(LARGE),
    // A callback writes the reply, after the last of several packets: nobody catches what it throws. The handler ends
    // with the response, as middleware of Connect does.
    held: ({ raw: { res } }, seen) => {
      time.set(() => res.writeHead(200, { 'x-n': String(seen.index), 'content-length': 4 }).end('held'), 25);
      return new Promise((resolve) => res.once('close', resolve));
    },
    destroy: ({ raw }) => void raw.res.destroy(),
    early: (_, seen) => reply('early', headers(seen)),
    throws: (ctx, { step }) => {
      if (hasBody(step)) ctx.bytes().catch(() => undefined);
      // To HEAD the stream of the GET route is not read.
      if (methodOf(step) === 'GET') return reply(spoiled());
      throw new Error('thrown');
    },
    closes: (_, seen) => reply('closes', { headers: { ...headers(seen).headers, connection: 'close' } }),
  };
  const noteLog = (entry: unknown, message?: unknown): void => {
    const { request_id: name, id = name, status } = entry as { request_id?: string; id?: string; status?: number };
    const seen = requests.get(id);
    if (message === 'request' && status !== undefined) seen?.logged.push(status);
    check(seen, `the log line "${String(message)}"`);
  };
  const logger: Logger = { debug: () => undefined, info: noteLog, warn: noteLog, error: noteLog };
  const app: Postern = new Postern('explored', {
    logger,
    accessLog: true,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    sendTimeout: SEND_MS,
    loadShedding: false,
  });
  // node:http would measure these in real time; Postern's own use of them is in virtual time.
  Object.assign(app.server, { requestTimeout: 0, headersTimeout: 0 });
  for (const name of HANDLERS) {
    const run = (ctx: Context): never => {
      const seen = requests.get(ctx.id) as Seen;
      begin(seen);
      check(seen, 'the handler');
      if (ctx.signal.aborted) seen.faults.push('a handler begins with a signal that has aborted');
      ctx.signal.addEventListener('abort', () => {
        seen.abortedAt = time.now;
        check(seen, 'a listener of ctx.signal');
      });
      return handle[name](ctx, seen) as never;
    };
    app.route(`/${name}`, { GET: run, POST: run });
  }
  for (const event of ['end', 'asyncStart', 'asyncEnd', 'error']) {
    subscribe(`tracing:postern.request:${event}`, (message) =>
      check(requests.get((message as { ctx: Context }).ctx.id), `${event} of postern.request`),
    );
  }
  subscribe('http.server.response.finish', (message) => {
    const { request, server } = message as { request: IncomingMessage; server: Server };
    const seen = requests.get(request.headers['x-request-id']);
    // node:http ends a reply that its handler wrote, and that waited, in the context of the reply before.
    const isByHand = ['raw', 'bulk', 'held'].includes(seen?.step.handler ?? '');
    if (server === app.server && !isByHand) check(seen, 'http.server.response.finish');
  });
  const active = (): number => Number(/^active_task_count (\S+)/m.exec(app.metrics.expose())?.[1]);
  return { server: watch(app.server), active };
}

/** The same program without Postern. */
export function bareProgram(): Program {
  const consume = (req: IncomingMessage, then: () => void): void => void req.resume().once('end', then);
  const large = (res: ServerResponse): void => void res.setHeader('content-length', LARGE.length).end(LARGE);
  const handle: Record<Handler, (req: IncomingMessage, res: ServerResponse, seen: Seen) => void> = {
    value: (req, res) => consume(req, () => res.setHeader('content-length', 5).end('value')),
    large: (req, res) => consume(req, () => void time.set(() => large(res), 5)),
    stream: (req, res, seen) => void (hasBody(seen.step) ? req : source(seen, false)).pipe(res),
    quick: (_, res) => void Readable.from(QUICK).pipe(res),
    failing: (_, res, seen) => void source(seen, true).on('error', () => res.destroy()).pipe(res),
    never: () => undefined,
    raw: (_, res) => {
      res.writeHead(200).write('ra');
      void time.sleep(5).then(() => res.end('w'));
    },
    bulk: (_, res) => void res.writeHead(200, { 'content-length': LARGE.length }).end(LARGE),
    held: (_, res) => void time.set(() => res.writeHead(200, { 'content-length': 4 }).end('held'), 25),
    destroy: (_, res) => void res.destroy(),
    early: (_, res) => void res.setHeader('content-length', 5).end('early'),
    throws: (_, res, { step }) => {
      const fail = (): void => void res.writeHead(500, { 'content-length': 6 }).end('thrown');
      if (methodOf(step) === 'GET') spoiled().on('error', fail).resume();
      else fail();
    },
    closes: (_, res) => void res.writeHead(200, { 'content-length': 6, connection: 'close' }).end('closes'),
  };
  const server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS }, (req, res) => {
    const seen = requests.get(req.headers['x-request-id']) as Seen;
    begin(seen);
    res.on('error', () => undefined).setHeader('x-n', String(seen.index));
    handle[seen.step.handler as Handler](req, res, seen);
  });
  return { server: watch(server), active: () => 0 };
}
