/**
 * `postern why` says first which service, and which of its routes, the failures follow from.
 *
 * @module-tag package
 */

import { expect, test } from 'vitest';
import type { Postern } from 'postern';
import { runCommand, runProcess } from '../support/command.js';
import { createApp, expectFailures } from '../support/serve.js';

const LOOPBACK = { host: '127.0.0.1', port: 0 };

interface Started {
  readonly app: Postern;
  readonly url: string;
  /** Of its monitor listener. */
  readonly monitor: string;
}

async function start(name: string, connections: string[], define: (app: Postern) => void): Promise<Started> {
  const app = createApp({ monitor: LOOPBACK, settings: { SERVICE_CONNECTIONS: connections } }, name);
  define(app);
  const { url, monitor } = await app.listen(LOOPBACK);
  return { app, url: url as string, monitor: `${monitor?.url}/${name}/` };
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

test('it names the service and the route at the end of the failing calls, with the whole tree below', async () => {
  const billing = await start('billing', [], (app) => {
    app.get('/invoices/:id', () => { throw new Error('boom'); });
  });
  const shop = await start('shop', [`billing=${billing.url}`], (app) => {
    app.get('/cart', async (ctx) => (await ctx.service('billing').get('/invoices/7')).body as object);
  });
  for (const { app } of [billing, shop]) expectFailures(app, 500);
  for (let i = 0; i < 5; i += 1) await fetch(`${shop.url}/cart`);
  const { code, stdout } = await runCommand(['why', shop.monitor, billing.monitor]);
  expect(firstLine(stdout)).toBe(
    'billing (GET /invoices/:id) answered 500 (framework_unknown_error): 10 failing or slow requests end there. ' +
      'Most of its requests come from shop.',
  );
  expect(stdout).toMatch(/ {2}shop {2}GET \/cart 500 framework_unknown_error, 5 times in [1-9]\d* s\n {2}└ billing GET 500 /);
  expect(code).toBe(1);
  const json = await runCommand(['why', shop.monitor, billing.monitor, '--json']);
  expect(JSON.parse(json.stdout)).toMatchObject({
    cause: { service: 'billing', route: 'GET /invoices/:id', times: 10 },
    services: [{ service: 'shop', document: { counts: [{ service: 'billing', times: 5 }] } }, { service: 'billing' }],
  });
});

test.for(['service', 'listener'])('the URL of another %s has its remedy', async (other) => {
  const { url, monitor } = await start('billing', [], () => undefined);
  const wrong = other === 'service' ? monitor.replace('/billing/', '/shop/') : `${url}/billing/`;
  expect(await runCommand(['why', wrong])).toEqual({
    code: 2,
    stdout: '',
    stderr: `postern: no service answered: ${wrong}: requests/ answered 404; ` +
      'give http://host:port/<service>/ of the monitor listener, with the name of its service\n',
  });
});

test('it names the instance, if the others of its service do not fail', async () => {
  const bad = await start('billing', [], (app) => app.get('/', () => { throw new Error('boom'); }));
  const good = await start('billing', [], (app) => app.get('/', () => 'fine'));
  expectFailures(bad.app, 500);
  for (const { url } of [bad, good]) await fetch(url);
  const { stdout } = await runCommand(['why', good.monitor, bad.monitor]);
  expect(firstLine(stdout)).toContain(`billing at ${bad.monitor} (GET /) answered 500`);
});

test.for<[status: number, asked: string[], sentence: RegExp]>([
  [204, ['shop', 'billing'], /^billing \(GET \/slow\) took up to 1306 ms: 1 failing or slow request ends there\.$/],
  [204, ['shop'], /^billing \(GET \/slow\) took up to 1306 ms; ask its own monitor listener, too/],
  [504, ['shop', 'billing'], /^billing \(GET \/slow\) was not reached/],
  [504, ['shop'], /^billing \(GET \/slow\) failed; ask its own monitor listener, too/],
])('a call that ended with %j is explained where the called service has no story, by %j', async ([status, asked, text]) => {
  const calls = [['billing', 'GET', '/slow', status, 1306, null, []]];
  const recent = [{ id: '1', method: 'GET', route: '/cart', caller: null, status, ms: 1310, at: new Date(), calls }];
  const app = createApp({ attachMonitorEndpoints: false });
  app.get('/shop/requests/', () => ({ active: [], recent, counts: [], events: [] }));
  app.get('/billing/requests/', () => ({ active: [], recent: [], counts: [], events: [] }));
  const { url } = await app.listen(LOOPBACK);
  const { stdout } = await runCommand(['why', ...asked.map((service) => `${url}/${service}/`)]);
  expect(firstLine(stdout)).toMatch(text);
});

test('a service that does not answer is named, and its callers know it', async () => {
  const shop = await start('shop', ['billing=http://127.0.0.1:9'], (app) => {
    app.get('/cart', async (ctx) => (await ctx.service('billing').get('/')).body as object);
  });
  expectFailures(shop.app, 503);
  await fetch(`${shop.url}/cart`);
  const { stdout, code } = await runCommand(['why', shop.monitor, 'http://127.0.0.1:9/billing/']);
  expect(firstLine(stdout)).toMatch(/^billing at http:\/\/127\.0\.0\.1:9\/billing\/ does not answer \(.+\): 1 failing/);
  expect(code).toBe(1);
});

test.for<[what: string, log: string, fail: (app: Postern) => unknown]>([
  ['job', 'job failed', (app) => app.job('mails.send', () => Promise.reject(new Error('no mail server')))],
  ['tracked promise', 'tracked task failed', (app) => app.track(Promise.reject(new Error('no mail server')))],
])('a %s that failed is a failure, although no request failed', async ([, log, fail]) => {
  const { app, monitor } = await start('mailer', [], () => undefined);
  expectFailures(app, log);
  await Promise.resolve(fail(app)).catch(() => undefined);
  const { code, stdout } = await runCommand(['why', monitor]);
  expect(firstLine(stdout)).toBe('No request failed.');
  expect(stdout).toContain(`  mailer  error ${log}`);
  expect(code).toBe(1);
});

test('where nothing failed it exits with 0, where no service answers with 2', async () => {
  const { monitor } = await start('users', [], (app) => app.get('/', () => 'fine'));
  expect(await runCommand(['why', monitor])).toMatchObject({ code: 0, stdout: 'Nothing failed.\n' });
  expect(await runCommand(['why', 'http://127.0.0.1:9/users/'])).toMatchObject({ code: 2, stdout: '' });
});

test('what a service of another kind answers steers no terminal', async () => {
  const { monitor } = await start('users', [], () => undefined);
  const other = createApp({ attachMonitorEndpoints: false }, 'other');
  const entry = { id: 'a', method: '\x1b[2J', at: new Date(), status: 200, ms: 5, calls: 7, route: '\n' };
  const noText = { toString: 1, valueOf: 1 };
  const recent = [{ id: 1 }, entry, { ...entry, caller: noText }, { ...entry, route: noText }];
  const event = { at: new Date(), level: 'warn', msg: 'no event' };
  const events = [{}, null, { ...event, noText }, { ...event, at: '2026-01-01T\x1b[2J' }];
  other.get('/users/requests/', () => ({ active: 7, recent, events, counts: 'x' }));
  const { url } = await other.listen(LOOPBACK);
  const { stdout, code } = await runCommand(['why', `${url}/users/`, monitor]);
  expect(stdout).toContain('\\u001b[2J');
  expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f]/);
  expect(stdout).not.toContain('no event');
  expect(code).toBe(0);
});

test('its times are those of the place where it runs, as in the log on a terminal', async () => {
  const other = createApp({ attachMonitorEndpoints: false }, 'other');
  const now = Date.now();
  other.get('/users/requests/', () => ({ events: [{ at: new Date(now), level: 'warn', msg: 'draining' }] }));
  const { url } = await other.listen(LOOPBACK);
  const { stdout } = await runProcess(['why', `${url}/users/`], { env: { TZ: 'Asia/Kolkata' } });
  expect(stdout).toContain(`${new Date(now + 5.5 * 3_600_000).toISOString().slice(11, 23)}  users  warn draining`);
});

test('it asks a listener on a port that belongs to another protocol, which the global fetch refuses', async () => {
  let monitor: string | undefined;
  for (const port of [10080, 6665, 6666, 6667, 6668, 6669, 6697, 5061]) {
    const app = createApp({ monitor: { ...LOOPBACK, port } });
    const addresses = await app.listen(LOOPBACK).catch(() => undefined);
    monitor = addresses?.monitor?.url;
    if (monitor !== undefined) break;
  }
  const { code, stdout } = await runCommand(['why', `${monitor}/users/`]);
  expect(stdout).toContain('Nothing failed');
  expect(code).toBe(0);
});
