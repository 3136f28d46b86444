/**
 * `postern gateway`: the exporters' own text for a module's routes; a route that a gateway can't express is a finding.
 *
 * @module-tag package
 */

import { expect, test } from 'vitest';
import { Postern, publicFacing } from 'postern';
import { toCaddy, toGatewayApi, toHAProxy, toKong, toNginx, type GatewayApiOptions } from '../../src/gateway.js';
import { createProject, runCommand, runProcess } from '../support/command.js';

const MODULE = `import { Postern, publicFacing } from 'postern';
console.log('loading');
const app = new Postern('users');
app.get('/users/:id', publicFacing({ params: ['q'] })((ctx) => ctx.params.id));
app.put('/users/:id', () => 1);
await app.run({ host: '127.0.0.1', port: 0 });
setImmediate(() => process.exit(0));
export default app;
`;

const app = new Postern('users', { logger: false });
app.get('/users/:id', publicFacing({ params: ['q'] })((ctx) => ctx.params.id));
app.put('/users/:id', () => 1);

const UPSTREAM = 'http://users.internal:8000';
const exporters = [
  { format: 'nginx', write: toNginx },
  { format: 'haproxy', write: toHAProxy },
  { format: 'caddy', write: toCaddy },
  { format: 'kong', write: toKong },
  { format: 'gateway-api', write: toGatewayApi },
];
test.for(exporters)(
  '--format $format prints what its exporter gives, the service named after the application',
  async ({ format, write }) => {
    const cwd = createProject({ 'app.mjs': MODULE });
    const gateway = format === 'gateway-api' ? ['--gateway', 'public'] : [];
    const options = {
      service: 'users',
      upstream: UPSTREAM,
      ...(format === 'gateway-api' ? { gateway: 'public' } : {}),
    } as GatewayApiOptions;
    expect(await runProcess(['gateway', 'app.mjs', '--format', format, '--upstream', UPSTREAM, ...gateway], { cwd }))
      .toEqual({ code: 0, stdout: write(app.router, options), stderr: 'loading\n' });
  },
);

test('every option reaches the exporter', async () => {
  const cwd = createProject({ 'app.mjs': MODULE });
  const hosts = ['--host', 'a.example', '--host', 'b.example'];
  const nginx = await runCommand(
    [
      'gateway',
      'app.mjs',
      '--format',
      'nginx',
      '--upstream',
      UPSTREAM,
      '--service',
      'people',
      '--listen',
      '*:9090',
      ...hosts,
    ],
    { cwd },
  );
  expect(nginx.stdout).toBe(
    toNginx(app.router, { service: 'people', upstream: UPSTREAM, listen: '*:9090', hosts: ['a.example', 'b.example'] }),
  );
  const manifests = await runCommand(
    [
      'gateway',
      'app.mjs',
      '--format',
      'gateway-api',
      '--upstream',
      UPSTREAM,
      '--gateway',
      'public',
      '--namespace',
      'shop',
      ...hosts,
    ],
    { cwd },
  );
  expect(manifests.stdout).toBe(
    toGatewayApi(app.router, {
      service: 'users',
      upstream: UPSTREAM,
      gateway: 'public',
      namespace: 'shop',
      hosts: ['a.example', 'b.example'],
    }),
  );
});

test('what the gateway cannot express is one line on stderr, exit code 1, and nothing on stdout', async () => {
  const cwd = createProject({
    'app.mjs': MODULE.replace('await', "app.route('/trace', { TRACE: publicFacing(() => 1) });\nawait"),
    'copy.mjs': MODULE,
  });
  const { code, stdout, stderr } = await runCommand(
    ['gateway', 'app.mjs', '--format', 'nginx', '--upstream', UPSTREAM],
    { cwd },
  );
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^loading\npostern: \/trace: nginx [^\n]+\n$/);
});

test('an application of another copy of the package will do', async () => {
  const cwd = createProject({ 'app.mjs': MODULE }, true);
  const { code, stdout } = await runCommand(['gateway', 'app.mjs', '--format', 'caddy', '--upstream', UPSTREAM], {
    cwd,
  });
  expect([code, stdout]).toEqual([0, toCaddy(app.router, { service: 'users', upstream: UPSTREAM })]);
});

const BILLING = `import { Postern, publicFacing } from 'postern';
const app = new Postern('billing', { logger: false });
app.get('/invoices', publicFacing(() => []));
export default app;
`;
const billing = new Postern('billing', { logger: false });
billing.get('/invoices', publicFacing(() => []));

test('several modules are one configuration, each with its addresses and its prefix', async () => {
  const cwd = createProject({ 'users.mjs': MODULE, 'billing.mjs': BILLING, 'site.conf': 'gzip on;\n' });
  const operands = [
    'users.mjs=http://10.0.0.7:8000,http://10.0.0.8:8000',
    '/billing:billing.mjs=https://billing.internal',
  ];
  const { code, stdout } = await runCommand(
    ['gateway', ...operands, '--format', 'nginx', '--tls', 'a.pem,a.key', '--include', 'site.conf'],
    { cwd },
  );
  const services = [
    { router: app.router, service: 'users', upstream: ['http://10.0.0.7:8000', 'http://10.0.0.8:8000'] },
    { router: billing.router, service: 'billing', upstream: 'https://billing.internal', prefix: '/billing' },
  ];
  expect([code, stdout]).toEqual([
    0,
    toNginx(services, { tls: { certificate: 'a.pem', key: 'a.key' }, include: 'site.conf' }),
  ]);
});

test('services whose public routes have one path are a finding', async () => {
  const cwd = createProject({ 'users.mjs': MODULE, 'billing.mjs': BILLING.replace('/invoices', '/users/me') });
  const { code, stdout, stderr } = await runCommand(
    ['gateway', 'users.mjs=http://a:80', 'billing.mjs=http://b:80', '--format', 'caddy'],
    { cwd },
  );
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/GET \/users\/:id of users and GET \/users\/me of billing are public/);
});

test.for([
  { args: ['a.mjs', 'b.mjs'], says: '--upstream is missing' },
  { args: ['a.mjs=http://a', 'b.mjs=http://b', '--service', 'x'], says: '--service is for one MODULE' },
  { args: ['a.mjs=http://a', '--upstream', 'http://b'], says: 'leave one of them out' },
  { args: ['a.mjs=http://a', '/a:a.mjs=http://b'], says: '"service" is "users" twice' },
  { args: ['/a/:a.mjs=http://a'], says: '"prefix" is "/a/"' },
  { args: ['a.mjs=http://a,'], says: '"upstream" is ""' },
  { args: ['a.mjs=http://a', '--tls', 'a.pem'], says: 'CERT,KEY' },
])('$args is wrong usage', async ({ args, says }) => {
  const cwd = createProject({ 'a.mjs': MODULE, 'b.mjs': BILLING });
  const { code, stdout, stderr } = await runCommand(['gateway', ...args, '--format', 'nginx'], { cwd });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(says);
});
