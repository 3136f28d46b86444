/**
 * Eight incidents in a mesh of five services with two instances each, every service behind HAProxy: the first sentence
 * of `postern why` names the service that is broken, and its route or function.
 *
 * @module-tag package
 * @module-tag gateways
 * @module-tag slow
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { startBalancer, type Balancer } from '../support/balancer.js';
import { runCommand } from '../support/command.js';
import { freePorts } from '../support/ports.js';

const NAMES = ['mail', 'stock', 'billing', 'orders', 'shop'] as const;
type Name = (typeof NAMES)[number];
const FILE = fileURLToPath(new URL('../support/incident-service.mjs', import.meta.url));

/** What an instance is told: its fault, and what else differs from the usual. */
interface Order {
  readonly fault: string;
  readonly retry?: number;
  readonly address?: Readonly<Record<string, string>>;
  readonly flood?: number;
}

interface Incident {
  readonly title: string;
  readonly order: (name: Name, instance: number) => Partial<Order> | undefined;
  readonly sentence: RegExp;
}

const at = (broken: Name, fault: string): Incident['order'] => (name) => (name === broken ? { fault } : undefined);

const INCIDENTS: readonly Incident[] = [
  { title: 'a slow dependency', order: at('stock', 'slow'), sentence: /^stock.*GET \/items\/:id/ },
  {
    title: 'a blocked event loop',
    order: (name, instance) => (name === 'billing' && instance === 1 ? { fault: 'blocked' } : undefined),
    sentence: /^billing at .* was blocked by checksum \(.*incident-service\.mjs:\d+\)/,
  },
  { title: 'a leak up to the limit of the memory', order: at('stock', 'leak'), sentence: /^stock.*GET \/items\/:id/ },
  {
    title: 'a retry storm',
    order: (name) => ({ fault: name === 'billing' ? 'failing' : 'none', retry: 3 }),
    sentence: /^billing.*GET \/charges\/:id.*answered 500/,
  },
  {
    title: 'a floating rejection',
    order: at('mail', 'rejection'),
    sentence: /^mail at .*GET \/mails\/:id.*does not answer/,
  },
  {
    title: 'a bad deployment',
    order: (name, instance) => (name === 'billing' && instance === 1 ? { fault: 'failing' } : undefined),
    sentence: /^billing at http:\/\/127\.0\.0\.1:\d+\/billing\/ \(GET \/charges\/:id\) answered 500/,
  },
  {
    title: 'an address that is gone',
    order: (name) => (name === 'orders' ? { address: { mail: 'http://127.0.0.1:1' } } : undefined),
    sentence: /^mail.*GET \/mails\/:id.*was not reached/,
  },
  {
    title: 'a neighbour that sends too much',
    order: (name) => (name === 'mail' ? { flood: 10 } : name === 'stock' ? { fault: 'busy' } : undefined),
    sentence: /^stock.*GET \/items\/:id/,
  },
];

/** One instance; its process is started anew if it has ended. */
class Instance {
  #child: ChildProcess | undefined;

  constructor(
    readonly name: Name,
    readonly args: readonly string[],
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.args[2]}/${this.name}/`;
  }

  async begin(order: Order): Promise<void> {
    if (this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) {
      const execArgv = ['--max-old-space-size=48'];
      this.#child = fork(FILE, this.args, { execArgv, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
      await once(this.#child, 'message');
    }
    const begun = once(this.#child, 'message');
    this.#child.send(order);
    await begun;
  }

  stop(): void {
    this.#child?.kill('SIGKILL');
  }
}

test('eight incidents are explained', { timeout: 600_000 }, async () => {
  const connections: Partial<Record<Name, string>> = {};
  const instances: Instance[] = [];
  const balancers: Balancer[] = [];
  onTestFinished(() => instances.forEach((each) => each.stop()));
  for (const name of NAMES) {
    const ports = await freePorts(4);
    const [first = 0, second = 0, ...monitors] = ports;
    const balancer = await startBalancer([first, second]);
    balancers.push(balancer);
    for (const [i, port] of [first, second].entries())
      instances.push(new Instance(name, [name, String(port), String(monitors[i]), JSON.stringify(connections)]));
    connections[name] = balancer.url;
  }
  // The flood of a neighbour comes from mail, which calls no service otherwise.
  const stock = { stock: connections.stock as string };
  const urls = instances.map(({ url }) => url);
  const said: [title: string, sentence: string, seconds: number][] = [];
  for (const { title, order, sentence: wanted } of INCIDENTS) {
    await Promise.all(instances.map((each, i) => {
      const address = each.name === 'mail' ? { address: stock } : {};
      return each.begin({ fault: 'none', ...address, ...order(each.name, i % 2) });
    }));
    await Promise.all(balancers.map(({ allUp }) => allUp()));
    let sentence = '';
    let seconds = 0;
    // On a busy machine the requests may come to nothing.
    for (let round = 0; round < 3 && !wanted.test(sentence); round += 1) {
      await sendRequests(`${connections.shop}/checkout/7`);
      // An instance that is only behind, because this machine is busy, is none that does not answer: ask again.
      for (let asked = 0; asked < 10 && !wanted.test(sentence); asked += 1) {
        await Promise.allSettled(urls.map((url) => fetch(`${url}health/`)));
        const startedAtMs = Date.now();
        const { stdout } = await runCommand(['why', ...urls]);
        sentence = stdout.split('\n', 1)[0] ?? '';
        seconds = (Date.now() - startedAtMs) / 1000;
      }
    }
    said.push([title, sentence, seconds]);
  }
  if (process.env['POSTERN_SHOW'] !== undefined) console.log(said);
  expect(said.map(([, sentence]) => sentence))
    .toEqual(INCIDENTS.map(({ sentence }): unknown => expect.stringMatching(sentence)));
});

/** 50 requests a second for three seconds, five at a time, so that they take both instances of each service. */
async function sendRequests(url: string): Promise<void> {
  const ask = (): Promise<unknown> => fetch(url).then((response) => response.arrayBuffer(), () => undefined);
  await ask();
  const requests: Promise<unknown>[] = [];
  for (let i = 0; i < 30; i += 1) {
    for (let each = 0; each < 5; each += 1) requests.push(ask());
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await Promise.all(requests);
}
