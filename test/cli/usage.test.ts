/**
 * How the command is called: help, version, and one line with exit code 2 for every wrong usage.
 *
 * @module-tag package
 * @module-tag slow
 */

import { realpathSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createProject, packageVersion, runCommand, runProcess } from '../support/command.js';

const COMMANDS = [
  'routes', 'gateway', 'openapi', 'errors', 'k8s', 'alerts', 'ping', 'live', 'why', 'profile', 'log-level', 'new',
  'demo',
];

/** A line of help fits a terminal of 80 columns. */
function expectToFit(help: string): void {
  for (const line of help.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
}

test('--help names every command, and each explains itself, in 80 columns', async () => {
  for (const flag of ['--help', '-h']) {
    const { code, stdout, stderr } = await runProcess([flag]);
    expect([code, stderr]).toEqual([0, '']);
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'));
    expectToFit(stdout);
  }
  const asked = [...COMMANDS.map((command) => [command, '--help']), ['ping', '-h'], ['ping', 'extra', '--help']];
  for (const args of asked) {
    const { code, stdout, stderr } = await runCommand(args);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(new RegExp(`^Usage: postern ${args[0]} `));
    expectToFit(stdout);
  }
});

test('without a command, and with help, the commands are printed', async () => {
  const { stdout } = await runCommand(['--help']);
  for (const args of [[], ['help']]) expect(await runProcess(args)).toEqual({ code: 0, stdout, stderr: '' });
});

test('help COMMAND explains it', async () => {
  const explained = await runCommand(['ping', '--help']);
  expect(await runCommand(['help', 'ping'])).toEqual(explained);
});

test('a module in TypeScript says what to do where Node.js does not read it', async () => {
  const flags = ['--no-strip-types', '--no-experimental-strip-types'];
  const flag = flags.find((name) => process.allowedNodeEnvironmentFlags.has(name));
  const cwd = createProject({ 'app.ts': APP });
  const { code, stdout, stderr } = await runProcess(['routes', 'app.ts'], { cwd, env: { NODE_OPTIONS: flag } });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toBe(
    `postern: app.ts can't be loaded: Unknown file extension ".ts" for ${realpathSync(cwd)}/app.ts; ` +
      `Node.js ${process.version} does not read TypeScript: use 22.18 or later, or a loader: NODE_OPTIONS="--import tsx"\n`,
  );
});

test('--version is the version of the package', async () => {
  expect(await runProcess(['--version'])).toEqual({ code: 0, stdout: `${packageVersion()}\n`, stderr: '' });
});

const APP = "import { Postern } from 'postern';\nexport default new Postern('users');\n";
const FILES = {
  'syntax.mjs': 'const a = 1;\nconst = 2;\n',
  'app.mjs': APP,
  'My_App.mjs': APP.replace("'users'", "'My_App'"),
  'off.mjs': APP.replace("'users'", "'users', { attachMonitorEndpoints: false }"),
  'two-ports.mjs': APP.replace("'users'", "'users', { monitor: { port: 9100 } }"),
  'digit.mjs': APP.replace("'users'", "'7up'"),
  'no-json.json': 'a\nb',
  'no-table.json': '{"a":1}',
  'odd-row.json': '[{"method":"GET"}]',
  'twice.json': JSON.stringify(
    [1, 2].map(() => ({ method: 'GET', path: '/', pattern: '^/$', public: true, params: null })),
  ),
};
const NGINX = ['gateway', 'app.mjs', '--format', 'nginx', '--upstream', 'http://127.0.0.1:8000'];
const PING = ['ping', 'http://127.0.0.1:1/users/', '--depth', '1'];

const wrong = [
  { args: [''], says: 'unknown command ""; give one of routes, gateway, openapi, errors, k8s, alerts, ping, ' },
  { args: ['route'], says: 'unknown command "route"; did you mean routes? give one of routes, ' },
  ...['help', '--help', '--version'].map((name) => (
    { args: [name.replace(/(.)(.)$/, '$2$1')], says: `did you mean ${name}? give one of routes, ` })),
  { args: ['routes', 'app.mjs', '--hepl'], says: "'--hepl'; did you mean --help? the options are --json, --check" },
  { args: ['toString'], says: 'unknown command "toString"' },
  { args: ['help', 'route'], says: 'unknown command "route"; did you mean routes?' },
  { args: ['\u001b[31mred'], says: 'unknown command' },
  { args: ['two\nlines'], says: 'unknown command' },
  { args: ['--colour'], says: 'unknown command' },
  { args: ['routes'], says: 'MODULE is missing' },
  { args: ['routes', 'app.mjs', 'other.mjs'],
    says: 'unexpected argument "other.mjs"; the options are --json, --check' },
  { args: ['routes', 'app.mjs', '--yaml'], says: "Unknown option '--yaml'; the options are --json, --check" },
  { args: ['routes', 'app.mjs', '--jsn'],
    says: "Unknown option '--jsn'; did you mean --json? the options are --json, --check" },
  { args: ['routes', 'syntax.mjs'], says: "syntax.mjs can't be loaded: Unexpected token '=' (line 2)" },
  { args: ['routes', 'app.mjs', '--json=1'], says: '--json' },
  { args: ['routes', 'app.mjs', '--check'], says: '--check' },
  { args: ['routes', 'app.mjs', '--check', 'missing.json'], says: "missing.json can't be read" },
  { args: ['routes', 'app.mjs', '--check', '.'], says: "can't be read" },
  { args: ['routes', 'app.mjs', '--check', 'no-json.json'], says: "no-json.json can't be read" },
  { args: ['routes', 'app.mjs', '--check', 'no-table.json'], says: 'no saved route table' },
  { args: ['routes', 'app.mjs', '--check', 'odd-row.json'], says: 'no saved route table' },
  { args: ['routes', 'app.mjs', '--check', 'twice.json'], says: 'no saved route table' },
  { args: ['gateway'], says: 'MODULE is missing' },
  { args: ['gateway', 'app.mjs'], says: '--format is missing' },
  { args: ['gateway', 'app.mjs', '--format', 'apache', '--upstream', 'http://a'],
    says: 'nginx, haproxy, caddy, kong, gateway-api' },
  { args: ['gateway', 'app.mjs', '--format', 'toString', '--upstream', 'http://a'], says: '--format is "toString"' },
  { args: ['gateway', 'app.mjs', '--format', 'nginx'], says: '--upstream is missing' },
  { args: ['gateway', 'app.mjs', '--format', 'gateway-api', '--upstream', 'http://users:8000'],
    says: '--gateway is missing' },
  { args: ['gateway', 'app.mjs', '--format', 'nginx', '--upstream', 'http://a/path'], says: 'upstream' },
  { args: ['gateway', 'My_App.mjs', '--format', 'nginx', '--upstream', 'http://a'], says: 'service' },
  { args: [...NGINX, '--service', 'Not A Label'], says: 'service' },
  { args: [...NGINX, '--listen', 'somewhere'], says: 'listen' },
  { args: [...NGINX, '--host', 'a;b'], says: 'hosts' },
  { args: [...NGINX, '--upstream', 'http://127.0.0.1:8001'], says: '--upstream is given twice' },
  { args: [...NGINX, 'extra'], says: 'unexpected argument "extra"' },
  { args: ['ping', '--depth', '1'], says: 'URL is missing' },
  { args: ['ping', 'http://127.0.0.1:1', '--depth', '1'], says: 'names no service' },
  { args: ['ping', 'http://127.0.0.1:1/', '--depth', '1'], says: 'names no service' },
  { args: ['ping', 'http://127.0.0.1:1/users/..', '--depth', '1'], says: 'names no service' },
  { args: ['ping', 'http://127.0.0.1:1/a%20b/', '--depth', '1'], says: 'names no service' },
  { args: ['ping', 'users', '--depth', '1'], says: 'not an http or https URL' },
  { args: ['ping', 'ftp://127.0.0.1/users/', '--depth', '1'], says: 'not an http or https URL' },
  { args: ['ping', 'http://me:secret@127.0.0.1/users/', '--depth', '1'], says: 'credentials' },
  { args: ['ping', 'http://127.0.0.1:1/users/ping/?depth=3', '--depth', '1'], says: '--depth' },
  ...['-1', '1.5', '1e1', 'all', '', '101', '0x1'].map((depth) => ({
    args: ['ping', 'http://127.0.0.1:1/users/', `--depth=${depth}`],
    says: `--depth is "${depth}"; give a number from 0 to 100`,
  })),
  { args: ['ping', 'http://127.0.0.1:1/users/', '--depth', '-1'], says: "'--depth' argument is ambiguous" },
  { args: [...PING, '--format', 'svg'], says: 'tree, json, mermaid, dot' },
  { args: [...PING, '--json', '--format', 'dot'], says: 'two formats' },
  { args: [...PING, '--timeout', '0'], says: '--timeout' },
  { args: ['k8s', 'app.mjs'], says: '--image is missing' },
  { args: ['k8s', 'app.mjs', '--image', ''], says: '--image is ""' },
  { args: ['k8s', 'app.mjs', '--image', 'a b'], says: '--image is "a b"' },
  { args: ['k8s', 'My_App.mjs', '--image', 'a'], says: 'name is "My_App"; give a DNS label' },
  { args: ['k8s', 'digit.mjs', '--image', 'a'], says: 'name is "7up"; give a DNS label' },
  { args: ['k8s', 'off.mjs', '--image', 'a'], says: 'no monitoring endpoints' },
  { args: ['k8s', 'two-ports.mjs', '--image', 'a'],
    says: '--monitor-port is missing; the application has the option monitor, so give its port' },
  { args: ['k8s', 'app.mjs', '--image', 'a', '--namespace', 'Prod'], says: '--namespace is "Prod"; give a DNS label' },
  { args: ['k8s', 'app.mjs', '--image', 'a', '--replicas', '-1'], says: '--replicas' },
  { args: ['k8s', 'app.mjs', '--image', 'a', '--port', '0'], says: '--port is "0"' },
  { args: ['k8s', 'app.mjs', '--image', 'a', '--monitor-port', '8000'], says: 'both 8000' },
  { args: ['k8s', 'app.mjs', '--image', 'a', '--tag', 'b'],
    says: 'the options are --image, --replicas, --namespace, --port, --monitor-port' },
  { args: ['alerts'], says: 'MODULE is missing' },
  ...[['log-level', 'http://127.0.0.1:1/users/', 'debug'],
    ['profile', 'http://127.0.0.1:1/users/', '--heap', '--out', 'x']].map((args) => ({
    args,
    says: "users can't be asked at http://127.0.0.1:1 (ECONNREFUSED); give the URL of its monitor listener",
  })),
  { args: ['profile', 'http://127.0.0.1:1/users/', '--heap', '--out', 'missing/x'], says: 'ENOENT' },
  { args: ['alerts', 'app.mjs', '--json'], says: 'it takes no options' },
  { args: ['alerts', 'off.mjs'], says: 'no monitoring endpoints' },
  { args: ['live'], says: 'URL is missing' },
  { args: ['live', 'http://127.0.0.1:1'], says: 'names no service' },
  { args: ['live', 'http://127.0.0.1:1/users/', '--depth', '21'], says: '--depth is "21"; give a number from 0 to 20' },
  { args: ['live', 'http://127.0.0.1:1/users/', '--port', '0'], says: '--port is "0"; give a number from 1 to 65535' },
  { args: ['demo', 'extra'], says: 'unexpected argument "extra"' },
  ...['0', '65534', 'http', '-5'].map((port) => ({ args: ['demo', `--port=${port}`], says: `--port is "${port}"` })),
];
test('whatever is wrong is said in one line on stderr, with exit code 2', { timeout: 120_000 }, async () => {
  const cwd = createProject(FILES);
  for (const { args, says } of wrong) {
    const { code, stdout, stderr } = await runCommand(args, { cwd });
    expect([code, stdout], `${args.join(' ')}: ${stderr}`).toEqual([2, '']);
    expect(stderr, args.join(' ')).toMatch(/^postern: [^\p{Cc}]+\n$/u);
    expect(stderr, args.join(' ')).toContain(says);
  }
});
