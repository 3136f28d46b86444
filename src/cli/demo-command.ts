/*
 * `postern demo`: three services that call each other, each a process of its own, and their live page, until the
 * command is told to stop.
 *
 * shop asks billing, billing asks stock, and stock knows shop, so the mesh is a ring.
 */

import { fork, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { Postern } from '../app/app.js';
import type { PosternOptions } from '../app/options.js';
import { random } from '../base/clock.js';
import { defineErrorCodes } from '../base/error-codes.js';
import { ApiError, NotFound } from '../base/errors.js';
import { publicFacing } from '../endpoint/public-facing.js';
import type { LivePage } from '../live/live-server.js';
import { choice, defineCommand, whole, type Command, type CommandResult } from './command.js';
import { showMesh } from './live-command.js';

const usage = `Usage: postern demo [--port P] [--service NAME]

Starts three services that call each other, on loopback, and a live page of
their mesh, and prints what to try. Each is a process of its own: 1, 2 and 3
stop a service, and start it again.

  --port P        first of three ports in a row. Default: 8000, or free ones
  --service NAME  starts only shop, billing or stock, on its own of these ports
`;

const DEMO_HOST = '127.0.0.1';
const SERVICES = ['shop', 'billing', 'stock'] as const;
const CTRL_C = '\x03';

/** These are meant for one service, but the demo runs three of them. */
const SERVICE_VARIABLES = [
  'REQUIRED_SERVICE_CONNECTIONS', 'SERVICE_URL_TEMPLATE', 'MONITOR_PORT', 'OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES',
];

export const demo: Command = defineCommand(
  usage,
  '',
  { port: whole(1, 65_533), service: choice(SERVICES) },
  async ({ port: given, service }) => {
    for (const name of SERVICE_VARIABLES) delete process.env[name];
    if (service !== undefined) return serveOne(service, given ?? 8000);
    const port = given ?? (await freePorts());
    const runs = SERVICES.map((name) => new ServiceRun(name, port));
    const close = async (): Promise<void> => void (await Promise.all(runs.map((run) => run.stop())));
    try {
      for (const run of runs) await run.start();
      // The live page has the port after these, or a free port if that is taken.
      const show = (at: number): Promise<LivePage> => showMesh({ service: 'shop', base: urlOf(port) }, 3, at);
      const live = await show(Math.min(port + 3, 65_535)).catch(() => show(0));
      const release = listenToKeys((key) => void runs[Number(key) - 1]?.toggle());
      return {
        text: describeDemo(port, live.url),
        close: async () => {
          release();
          await Promise.all([live.close(), close()]);
        },
      };
    } catch (error) {
      await close();
      throw error;
    }
  },
);

function urlOf(port: number): string {
  return `http://${DEMO_HOST}:${port}`;
}

/** Runs one of the services in this process; it ends with the demo that has started it, however that ends. */
async function serveOne(service: (typeof SERVICES)[number], first: number): Promise<CommandResult> {
  const index = SERVICES.indexOf(service);
  const create = { shop: createShop, billing: createBilling, stock: createStock }[service];
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  // Each asks the next one; stock asks shop.
  const app = create(urlOf(first + ((index + 1) % SERVICES.length)));
  const { url } = await app.listen({ host: DEMO_HOST, port: first + index });
  process.send?.('listening');
  return { text: process.send === undefined ? `${url}\n` : '', close: () => app.close() };
}

/** One service of the demo, which is stopped and started by its key. */
class ServiceRun {
  #child: ChildProcess | undefined;
  #moving: Promise<void> | undefined;

  constructor(
    readonly name: string,
    readonly port: number,
  ) {}

  /** @throws {Error} with what the service complains of, if it does not listen */
  async start(): Promise<void> {
    // Not on the terminal: a process resets the terminal when it ends, and then keys would wait for Enter. What is
    // read here is text, as it would be on the terminal.
    const format = process.stderr.isTTY && !process.env['LOG_FORMAT'] ? { LOG_FORMAT: 'text' } : {};
    const child = fork(process.argv[1] ?? '', ['demo', '--service', this.name, '--port', String(this.port)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [],
      env: { ...process.env, ...format },
    });
    let complaint = '';
    let isListening = false;
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      if (isListening) process.stderr.write(chunk);
      else complaint += chunk;
    });
    const closed = once(child, 'close');
    isListening = await Promise.race([once(child, 'message').then(() => true), closed.then(() => false)]);
    if (!isListening) throw new Error(complaint.replace(/^postern: /, '') || `${this.name} ended as it started`);
    process.stderr.write(complaint);
    this.#child = child;
    void closed.then(() => (this.#child = undefined));
  }

  async stop(): Promise<void> {
    await this.#moving;
    const child = this.#child;
    if (child === undefined) return;
    const closed = once(child, 'close');
    child.kill();
    await closed;
  }

  /** Stops the service if it runs, else starts it. While it does either, the key does nothing. */
  async toggle(): Promise<void> {
    if (this.#moving !== undefined) return;
    const isRunning = this.#child !== undefined;
    const move = isRunning ? this.stop() : this.start();
    this.#moving = move.catch((error: unknown) => void process.stderr.write(`${String(error)}\n`));
    await this.#moving;
    this.#moving = undefined;
    process.stderr.write(`${this.name} ${this.#child === undefined ? 'is stopped' : 'runs'}\n`);
  }
}

/** Calls back for each key that is pressed. @returns restores the terminal */
function listenToKeys(onKey: (key: string) => void): () => void {
  const { stdin } = process;
  if (stdin.isTTY && isInBackground()) return () => undefined;
  const setRaw = (isRaw: boolean): void => void (stdin.isTTY && stdin.setRawMode(isRaw));
  setRaw(true);
  stdin.setEncoding('utf8').on('error', () => undefined).on('data', (keys: string) => {
    // In this mode the terminal makes no signal of it.
    for (const key of keys) if (key === CTRL_C) process.kill(process.pid, 'SIGINT');
    else onKey(key);
  });
  return () => {
    setRaw(false);
    stdin.pause();
  };
}

/** Whether a shell runs this process in the background (`&`), where the kernel stops it if it reads the terminal. */
function isInBackground(): boolean {
  const { status, stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(process.pid)], { encoding: 'utf8' });
  return status === 0 && !stdout.includes('+');
}

/** Each address on a line of its own: terminals make a link of it, and a triple click selects nothing else. */
function describeDemo(port: number, live: string): string {
  const shop = urlOf(port);
  const toTry = [
    ['The mesh, live in a browser', live],
    ['An order, through all three services', `${shop}/orders/1?quantity=2`],
    ['An error of stock, seen at shop', `${shop}/orders/3`],
    ['A parameter that is not allowed', `${shop}/orders/1?color=red`],
    ['Health', `${shop}/shop/health/`],
    ['The mesh, three levels deep', `${shop}/shop/ping/?depth=3`],
    ['Metrics for Prometheus', `${urlOf(port + 1)}/billing/metrics/`],
    ['Metrics as JSON', `${urlOf(port + 2)}/stock/metrics/?json`],
  ];
  return `Three services are running: shop asks billing, billing asks stock, and stock knows shop.

${toTry.map(([what, url]) => `${what}:\n${url}\n`).join('\n')}
To see its traces in a collector (OTLP/HTTP) on this machine:
OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 npx postern demo

Press 1, 2 or 3 to stop shop, billing or stock, and again to start it. The page
shows it, and so does the next order. Ctrl-C drains and stops all of them.
`;
}

const ITEMS: ReadonlyMap<string, { name: string; price: number; left: number }> = new Map([
  ['1', { name: 'lamp', price: 40, left: 3 }],
  ['2', { name: 'desk', price: 180, left: 1 }],
  ['3', { name: 'chair', price: 75, left: 0 }],
]);

class OutOfStock extends ApiError {
  static override statusCode = 409;
  static override message = 'Out of stock.';
  static override errorCode = defineErrorCodes({ out_of_stock: 20_001 }).out_of_stock;
}

function optionsOf(connection: string): PosternOptions {
  return { version: '1.0.0', settings: { SERVICE_CONNECTIONS: [connection] } };
}

/** The service that answers the public. */
function createShop(billing: string): Postern {
  return new Postern('shop', optionsOf(`billing=${billing}`)).get(
    '/orders/:item(\\d+)',
    publicFacing({ params: ['quantity'] })(async (ctx) => {
      const quantity = ctx.query.get('quantity') ?? '1';
      const { body } = await ctx.service('billing').get(`/quotes/${ctx.params.item}`, { query: { quantity } });
      return { order: body };
    }),
  );
}

function createBilling(stock: string): Postern {
  return new Postern('billing', optionsOf(`stock=${stock}`)).get('/quotes/:item(\\d+)', async (ctx) => {
    const { body } = await ctx.service('stock').get(`/items/${ctx.params.item}`);
    const { name, price } = body as { name: string; price: number };
    const quantity = Number(ctx.query.get('quantity') ?? 1);
    return { item: name, quantity, total: price * quantity };
  });
}

function createStock(shop: string): Postern {
  return new Postern('stock', optionsOf(`shop=${shop}`)).get('/items/:item(\\d+)', ({ params: { item } }) => {
    const found = ITEMS.get(item);
    if (found === undefined) throw new NotFound(`There is no item ${item}.`);
    if (found.left === 0) throw new OutOfStock(`No ${found.name} is left.`);
    return found;
  });
}

/** The first of three free ports in a row: 8000, else any. */
async function freePorts(): Promise<number> {
  for (let port = 8000; ; port = 10_000 + Math.floor(random() * 40_000))
    if (await Promise.all([0, 1, 2].map((index) => tryPort(port + index))).then(() => true, () => false)) return port;
}

/** @throws if something listens there */
async function tryPort(port: number): Promise<void> {
  const server = createServer().listen(port, DEMO_HOST);
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}
