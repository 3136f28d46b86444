/** `postern gateway`: the exporters' own text for a module's routes; a route that a gateway can't express is a finding. */

import { expect, test } from 'vitest';
import { Postern, publicFacing } from 'postern';
import { toCaddy, toGatewayApi, toHAProxy, toKong, toNginx, type GatewayApiOptions } from '../../src/gateway.js';
import { createProject, runCommand } from '../support/command.js';

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
test.for(exporters)('--format $format prints what its exporter gives, the service named after the application', async ({ format, write }) => {
  const cwd = createProject({ 'app.mjs': MODULE });
  const gateway = format === 'gateway-api' ? ['--gateway', 'public'] : [];
  const options: GatewayApiOptions = { service: 'users', upstream: UPSTREAM, gateway: 'public' };
  expect(await runCommand(['gateway', 'app.mjs', '--format', format, '--upstream', UPSTREAM, ...gateway], { cwd })).toEqual({ code: 0, stdout: write(app.router, options), stderr: 'loading\n' });
});

test('every option reaches the exporter', async () => {
  const cwd = createProject({ 'app.mjs': MODULE });
  const hosts = ['--host', 'a.example', '--host', 'b.example'];
  const nginx = await runCommand(['gateway', 'app.mjs', '--format', 'nginx', '--upstream', UPSTREAM, '--service', 'people', '--listen', '*:9090', ...hosts], { cwd });
  expect(nginx.stdout).toBe(toNginx(app.router, { service: 'people', upstream: UPSTREAM, listen: '*:9090', hosts: ['a.example', 'b.example'] }));
  const manifests = await runCommand(['gateway', 'app.mjs', '--format', 'gateway-api', '--upstream', UPSTREAM, '--gateway', 'public', '--namespace', 'shop', ...hosts], { cwd });
  expect(manifests.stdout).toBe(toGatewayApi(app.router, { service: 'users', upstream: UPSTREAM, gateway: 'public', namespace: 'shop', hosts: ['a.example', 'b.example'] }));
});

test('what the gateway cannot express is one line on stderr, exit code 1, and nothing on stdout', async () => {
  const cwd = createProject({ 'app.mjs': MODULE.replace('await', "app.route('/trace', { TRACE: publicFacing(() => 1) });\nawait"), 'copy.mjs': MODULE });
  const { code, stdout, stderr } = await runCommand(['gateway', 'app.mjs', '--format', 'nginx', '--upstream', UPSTREAM], { cwd });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^loading\npostern: \/trace: nginx [^\n]+\n$/);
});

test('an application of another copy of the package will do', async () => {
  const cwd = createProject({ 'app.mjs': MODULE }, true);
  const { code, stdout } = await runCommand(['gateway', 'app.mjs', '--format', 'caddy', '--upstream', UPSTREAM], { cwd });
  expect([code, stdout]).toEqual([0, toCaddy(app.router, { service: 'users', upstream: UPSTREAM })]);
});
