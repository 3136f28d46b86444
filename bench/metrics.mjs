/**
 * Compares `postern/metrics` with prom-client: exposition, updates, new series, and what the default metrics cost a
 * bare server.
 *
 * Run `npm run build` first, then `npm ci && npm run metrics` in this folder. Each scenario has a process of
 * its own; the two libraries take turns, and what is told is the median of the rounds and the ratio of the medians.
 */
import { execFileSync, spawn } from 'node:child_process';
import http from 'node:http';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25];
const LABEL_NAMES = ['method', 'route', 'status_code'];
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const SELF = fileURLToPath(import.meta.url);

/** The same calls for both libraries; `scrape` gives what goes over the wire. */
const LIBRARIES = {
  postern: async () => {
    const { Registry } = await import('../dist/metrics.js');
    const registry = new Registry();
    return {
      counter: (options) => registry.counter(options),
      histogram: (options) => registry.histogram(options),
      expose: () => registry.expose(),
      scrape: () => Buffer.from(registry.expose()),
    };
  },
  'prom-client': async () => {
    const { default: client } = await import('prom-client');
    const registry = new client.Registry();
    return {
      counter: (options) => new client.Counter({ ...options, registers: [registry] }),
      histogram: (options) => new client.Histogram({ ...options, registers: [registry] }),
      expose: () => registry.metrics(),
      scrape: async () => Buffer.from(await registry.metrics()),
    };
  },
};

const UPDATES = {
  'inc()': ({ plain }) => () => plain.inc(),
  'inc(labels), 1 label': ({ one }) => (index) => one.inc({ queue: QUEUES[index & 3] }),
  'inc(labels), 1 label of 64 values': ({ one }) => (index) => one.inc({ queue: ROUTES[index & 63] }),
  'inc(labels), 3 labels':
    ({ counter }) =>
    (index) =>
      counter.inc({ method: 'GET', route: ROUTES[index & 63], status_code: '200' }),
  'observe(labels, value), 3 labels':
    ({ histogram }) =>
    (index) =>
      histogram.observe({ method: 'GET', route: ROUTES[index & 63], status_code: '200' }, (index & 127) / 10),
  'bound inc()': ({ counter }) => ((bound) => () => bound.inc())(counter.labels('GET', '/0', '200')),
  'bound observe(value)': ({ histogram }) =>
    (
      (bound) => (index) =>
        bound.observe((index & 127) / 10)
    )(histogram.labels('GET', '/0', '200')),
};
const QUEUES = ['mail', 'bill', 'scan', 'sync'];
const ROUTES = Array.from({ length: 64 }, (_, index) => `/${index}`);

/** An update whose labels are new: `route` is so every time. */
const NEW_LABELS = {
  1: (route) => ({ route }),
  2: (route, index) => ({ method: METHODS[index & 3], route }),
  3: (route, index) => ({ method: METHODS[index & 3], route, status_code: STATUS_CODES[(index >> 2) & 3] }),
};
const METHODS = ['GET', 'POST', 'PUT', 'DELETE'];
const STATUS_CODES = ['200', '201', '404', '500'];

const SCENARIOS = {
  /**
   * Milliseconds for one exposition as a string (`expose`) or as bytes (`scrape`); every series has changed since the
   * one before.
   */
  async expose(library, how, kind, series) {
    const metrics = await LIBRARIES[library]();
    const metric = metrics[kind]({
      name: kind === 'counter' ? 'requests_total' : 'request_seconds',
      help: 'Requests.',
      labelNames: LABEL_NAMES,
      ...(kind === 'histogram' && { buckets: BUCKETS }),
    });
    const times = [];
    const rounds = Math.max(25, 100_000 / Number(series));
    for (let round = 0; round < rounds; round++) {
      for (let index = 0; index < Number(series); index++) {
        const labels = { method: 'GET', route: `/users/${index}`, status_code: '200' };
        if (kind === 'counter') metric.inc(labels, index + 1);
        else metric.observe(labels, ((index + round) % 300) / 10);
      }
      const start = performance.now();
      const exposition = await metrics[how]();
      times.push(performance.now() - start);
      const lines = (typeof exposition === 'string' ? exposition : Buffer.from(exposition).toString()).split('\n')
        .filter((line) => line !== '' && !line.startsWith('#')).length;
      const expected = Number(series) * (kind === 'counter' ? 1 : BUCKETS.length + 3);
      if (lines !== expected) throw new Error(`${library} wrote ${lines} samples, not ${expected}`);
    }
    return median(times.slice(times.length / 5));
  },

  /** Nanoseconds for one update. */
  async update(library, name) {
    const metrics = await LIBRARIES[library]();
    const counter = metrics.counter({ name: 'requests_total', help: 'Requests.', labelNames: LABEL_NAMES });
    const histogram = metrics.histogram({
      name: 'request_seconds',
      help: 'Requests.',
      labelNames: LABEL_NAMES,
      buckets: BUCKETS,
    });
    const one = metrics.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue'] });
    const update = UPDATES[name]({
      plain: metrics.counter({ name: 'plain_total', help: 'Plain.' }),
      one,
      counter,
      histogram,
    });
    const times = [];
    for (let round = 0; round < 12; round++) {
      const start = performance.now();
      for (let index = 0; index < 200_000; index++) update(index);
      times.push(((performance.now() - start) / 200_000) * 1e6);
    }
    const sums = [...(await metrics.expose()).matchAll(/^(?:\w+_total|\w+_count)\S* (\S+)$/gm)].reduce(
      (sum, [, value]) => sum + Number(value),
      0,
    );
    if (sums !== 12 * 200_000) throw new Error(`${library} counted ${sums}`);
    return median(times.slice(2));
  },

  /**
   * Microseconds for the update that makes a series: with one metric the first ones of a process, with more those of
   * compiled code.
   */
  async create(library, kind, labelCount, series, metricCount) {
    const toLabels = NEW_LABELS[labelCount];
    const times = [];
    for (let round = 0; round < Number(metricCount); round++) {
      const metrics = await LIBRARIES[library]();
      const metric = metrics[kind]({
        name: 'requests_total',
        help: 'Requests.',
        labelNames: Object.keys(toLabels('', 0)),
      });
      const routes = Array.from({ length: Number(series) }, (_, index) => `/users/${round}/${index}`);
      const update = kind === 'counter' ? (labels) => metric.inc(labels) : (labels) => metric.observe(labels, 0.2);
      // What the library's loading left would be collected at some moment of a hundred series, or at none.
      globalThis.gc({ type: 'minor' });
      const start = performance.now();
      for (let index = 0; index < routes.length; index++) update(toLabels(routes[index], index));
      times.push(((performance.now() - start) / routes.length) * 1000);
      const made = (await metrics.expose()).match(/^requests_total(?:_count)?{.*} 1(?:\.0)?$/gm)?.length;
      if (made !== routes.length) throw new Error(`${library} made ${made} series, not ${routes.length}`);
    }
    return median(times);
  },

  /**
   * Microseconds of CPU for each request of a bare server: alone, or with default metrics and a histogram over
   * requests.
   */
  async serve(what) {
    let observe = () => {};
    if (what === 'with metrics') {
      const { Postern } = await import('../dist/index.js');
      const app = new Postern('bench', { logger: false });
      const histogram = app.metrics.histogram({
        name: 'bench_duration_seconds',
        help: 'Requests.',
        labelNames: LABEL_NAMES,
      });
      const bound = histogram.labels({ method: 'GET', route: '/', status_code: '200' });
      await app.listen({ port: 0, host: '127.0.0.1' }); // gets no request, but its sampler watches the process
      observe = (start) => bound.observe((performance.now() - start) / 1000);
    }
    const server = http.createServer((req, res) => {
      const start = performance.now();
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify({ id: 7, name: 'postern', path: req.url }), () => observe(start));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    process.send(server.address().port);
    let used = process.cpuUsage();
    process.on('message', () => {
      const { user, system } = process.cpuUsage(used);
      used = process.cpuUsage();
      process.send(user + system);
    });
  },
};

const [scenario, ...parameters] = process.argv.slice(2);
if (scenario !== undefined) {
  const result = await SCENARIOS[scenario](...parameters);
  if (result !== undefined) process.send(result, () => process.exit());
} else {
  await main();
}

async function main() {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  console.log(
    `Node.js ${process.version}, ${cpus()[0].model} x ${cpus().length}, load ${loadavg()[0].toFixed(2)}, commit ${commit}, ${ROUNDS} rounds\n`,
  );
  for (const kind of ['counter', 'histogram']) {
    for (const how of ['expose', 'scrape']) {
      for (const series of [100, 1000, 10_000])
        await compare(`${how} ${series} ${kind}s`, 'ms', (library) => ['expose', library, how, kind, series]);
    }
  }
  for (const name of Object.keys(UPDATES)) await compare(name, 'ns', (library) => ['update', library, name]);
  for (const kind of ['counter', 'histogram']) {
    for (const labelCount of [1, 2, 3]) {
      await compare(`first 100 ${kind}s, labels: ${labelCount}`, 'us', (library) => [
        'create', library, kind, labelCount, 100, 1,
      ]);
      await compare(`new ${kind}, labels: ${labelCount}`, 'us', (library) => [
        'create', library, kind, labelCount, 1000, 20,
      ]);
    }
  }
  await compareServers();
}

async function compare(title, unit, toArguments) {
  const results = { postern: [], 'prom-client': [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const library of Object.keys(results)) results[library].push(await run(toArguments(library)));
  }
  const [ours, theirs] = [median(results.postern), median(results['prom-client'])];
  const ratios = results.postern.map((value, round) => results['prom-client'][round] / value);
  console.log(
    `${title.padEnd(34)} postern ${ours.toFixed(2).padStart(8)} ${unit}   prom-client ${theirs.toFixed(2).padStart(8)} ${unit}   ` +
      `x ${(theirs / ours).toFixed(1)} (${Math.min(...ratios).toFixed(1)} to ${Math.max(...ratios).toFixed(1)})`,
  );
}

/**
 * Both servers run at once and take turns at being asked, so that what else the machine does hits both; each round has
 * new ones, because some processes are slow for their whole life.
 */
async function compareServers() {
  const results = [];
  for (let round = 0; round < ROUNDS; round++) {
    const servers = await Promise.all(['bare', 'with metrics'].map(startServer));
    for (const server of servers) await server.measure(50_000);
    for (let turn = 0; turn < 6; turn++) {
      const order = turn % 2 === 0 ? servers : [...servers].reverse();
      for (const server of order) server.last = await server.measure(5000);
      results.push(servers.map(({ last }) => last));
    }
    for (const server of servers) server.stop();
  }
  const ratios = results.map(([bare, withMetrics]) => withMetrics / bare).sort((a, b) => a - b);
  const [bare, withMetrics] = [0, 1].map((index) => median(results.map((result) => result[index])));
  console.log(
    `\nCPU per request   bare ${bare.toFixed(1)} us   with metrics ${withMetrics.toFixed(1)} us   ` +
      `x ${median(ratios).toFixed(3)} (half of the rounds: ${ratios[ratios.length >> 2].toFixed(3)} to ${ratios[(3 * ratios.length) >> 2].toFixed(3)})`,
  );
}

async function startServer(what) {
  const child = start(['serve', what]);
  const port = await message(child);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 32 });
  return {
    async measure(requests) {
      await ask(child); // starts the count anew
      await load(agent, port, requests);
      return (await ask(child)) / requests;
    },
    stop() {
      agent.destroy();
      child.kill();
    },
  };
}

async function load(agent, port, requests) {
  const one = () =>
    new Promise((resolve, reject) => {
      http
        .get({ agent, port, host: '127.0.0.1', path: '/users/7' }, (res) => {
          let body = '';
          res.setEncoding('utf8').on('data', (chunk) => (body += chunk));
          res.on('end', () => (JSON.parse(body).path === '/users/7' ? resolve() : reject(new Error(body))));
        })
        .on('error', reject);
    });
  let left = requests;
  const worker = async () => {
    while (left-- > 0) await one();
  };
  await Promise.all(Array.from({ length: 32 }, worker));
}

function start(parameters) {
  return spawn(process.execPath, ['--expose-gc', SELF, ...parameters.map(String)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

async function run(parameters) {
  return message(start(parameters));
}

function ask(child) {
  const answer = message(child);
  child.send('cpu');
  return answer;
}

function message(child) {
  return new Promise((resolve, reject) => {
    const fail = (code) => reject(new Error(`a scenario ended with ${code} before it had a result`));
    child.once('exit', fail);
    child.once('message', (result) => {
      child.off('exit', fail);
      resolve(result);
    });
  });
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}
