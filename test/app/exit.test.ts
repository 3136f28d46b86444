/**
 * What keeps a process alive, and what does not.
 *
 * @module-tag slow
 */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const ENDINGS: Record<string, string> = {
  'imports every entry': `import 'postern'; import 'postern/metrics'; import 'postern/gateway';`,
  'makes an application that uses everything and listens to nothing': `
    import { Postern } from 'postern';
    const app = new Postern('a', { settings: { SERVICE_CONNECTIONS: ['b=http://127.0.0.1:1'] }, trustProxy: ['10.0.0.0/8'] });
    app.use((ctx, next) => next()).get('/:x', () => 'x').onClose(() => {});
    app.health.check('c', () => true);
    app.metrics.histogram({ name: 'x_seconds', help: 'X.' }).startTimer();
    app.track(new Promise(() => {}));
    app.service('b');
    app.router.routesPublic;
    app.metrics.expose();`,
  'asks an application in memory, its metrics and its pings too': `
    import { Postern } from 'postern';
    const app = new Postern('a', { logger: false, settings: { SERVICE_CONNECTIONS: ['b=http://127.0.0.1:1'] } });
    app.get('/', () => 'x').post('/', (ctx) => ctx.text());
    app.health.check('c', () => new Promise(() => {}), { timeout: 20 });
    for (const path of ['/', '/a/metrics/', '/a/health/', '/a/ping/?depth=1', '/none']) await (await app.request(path)).text();
    await (await app.request('/', { method: 'POST', body: 'x' })).text();`,
  'closes an application that never listened': `
    import { Postern } from 'postern';
    const app = new Postern('a', { logger: false });
    await (await app.request('/a/metrics/')).text();
    await app.close();`,
  'closes an application with clients that keep their connections': `
    import { Postern } from 'postern';
    import { connect } from 'node:net';
    const app = new Postern('a', { logger: false, settings: { SERVICE_CONNECTIONS: [] } });
    app.get('/', () => 'x').post('/', () => 'unread').get('/stream', async function* () { for (;;) { yield 'x'; await new Promise(setImmediate); } });
    const { url, port } = await app.listen({ host: '127.0.0.1', port: 0 });
    await (await fetch(url)).text();
    const open = (text) => new Promise((resolve) => {
      const s = connect(port, '127.0.0.1', () => s.write(text)).on('error', () => {});
      s.once(text === '' ? 'connect' : 'data', resolve);
    });
    await open('');
    await open('GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n');
    await open('POST / HTTP/1.1\\r\\nHost: x\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n');
    await open('GET /stream HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n');
    await app.close({ timeout: 50 });`,
  'closes an application that called another one': `
    import { Postern } from 'postern';
    const b = new Postern('b', { logger: false }).get('/', () => 'x');
    const { url } = await b.listen({ host: '127.0.0.1', port: 0 });
    const a = new Postern('a', { logger: false, settings: { SERVICE_CONNECTIONS: ['b=' + url] } });
    await a.service('b').get('/');
    await Promise.all([a.close(), b.close()]);`,
  'closes an application inside the server of another': `
    import { Postern } from 'postern';
    import { createServer } from 'node:http';
    const app = new Postern('a', { logger: false });
    const server = createServer();
    app.attach(server);
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    await (await fetch('http://127.0.0.1:' + server.address().port + '/a/metrics/')).text();
    await app.close();
    server.close();
    server.closeAllConnections();`,
  'fails to listen': `
    import { Postern } from 'postern';
    import { createServer } from 'node:http';
    const taken = createServer();
    await new Promise((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const app = new Postern('a', { logger: false });
    await app.listen({ host: '127.0.0.1', port: taken.address().port }).catch(() => {});
    taken.close();`,
};
const run = promisify(execFile);
test.for(Object.entries(ENDINGS))('a process that %s exits by itself', async ([, source]) => {
  // A process that hangs is killed in time, which rejects.
  const code = `${source}; process.on('exit', () => console.log('done'));`;
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: ROOT,
    timeout: 10_000,
  });
  expect([stdout, stderr]).toEqual(['done\n', '']);
});

test.for([
  ['where stderr is a terminal', 'true', {}, true],
  ['in a pod that has a terminal', 'true', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, false],
  ['where stderr is no terminal', 'false', {}, false],
  ['under node --watch', 'false', { WATCH_REPORT_DEPENDENCIES: '1' }, true],
  ['under node --watch in a pod', 'false', { WATCH_REPORT_DEPENDENCIES: '1', KUBERNETES_SERVICE_HOST: '10.0.0.1' }, false],
  ['where DRAIN_DELAY says so', 'true', { DRAIN_DELAY: '60000' }, false],
] as const)('SIGTERM %s', async ([, isTTY, env, endsAtOnce]) => {
  const script = `
    import { Postern } from 'postern';
    process.stderr.isTTY = ${isTTY};
    await new Postern('a', { logger: false }).run({ host: '127.0.0.1', port: 0 });
    process.on('SIGTERM', () => setTimeout(() => console.log('still here'), 1000));
    process.kill(process.pid, 'SIGTERM');`;
  const { KUBERNETES_SERVICE_HOST: _host, DRAIN_DELAY: _delay, ...rest } = process.env;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: ROOT, env: { ...rest, ...env } });
  onTestFinished(() => void child.kill('SIGKILL'));
  const first = await Promise.race([once(child, 'exit'), once(child.stdout, 'data')]);
  expect(String(first[0])).toBe(endsAtOnce ? '0' : 'still here\n');
});

test('a second run() is refused, and a signal then drains the application once', async () => {
  const script = `
    import { Postern } from 'postern';
    const app = new Postern('a', {});
    await app.run({ host: '127.0.0.1', port: 0 });
    await app.run().catch(() => undefined);
    process.kill(process.pid, 'SIGINT');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: ROOT });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [lines] = await Promise.all([readText(child.stderr), once(child, 'exit')]);
  expect([...lines.matchAll(/"msg":"draining"/g)]).toHaveLength(1);
});

test.for([
  ['/slow', 'slow', 0],
  ['/never', 'cut', 1],
] as const)('a process of two applications ends when both have drained: GET %s is %s', async ([path, reply, code]) => {
  const script = `
    import { Postern } from 'postern';
    const serve = async (name) => {
      const app = new Postern(name, { logger: false });
      app.get('/slow', () => (console.log('running'), new Promise((resolve) => setTimeout(resolve, 300, 'slow'))));
      app.get('/never', () => (console.log('running'), new Promise(() => {})));
      return (await app.run({ host: '127.0.0.1', port: 0, delay: 0, timeout: 500 })).url;
    };
    await serve('idle');
    console.log(await serve('busy'));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: ROOT });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [url] = await once(child.stdout, 'data');
  const received = fetch(new URL(path, String(url))).then((res) => res.text()).catch(() => 'cut');
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  expect([await received, await once(child, 'exit')]).toEqual([reply, [code, null]]);
});

test.for([
  ['tsx watch', ['watch'], {}, 0],
  ['tsx', [], {}, 'still here'],
  ['tsx watch in a pod', ['watch'], { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, 'still here'],
] as const)('SIGTERM under %s, whose stderr is a pipe', async ([, args, env, outcome]) => {
  const directory = mkdtempSync(join(tmpdir(), 'postern-watch-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'service.mjs');
  writeFileSync(file, `
    import { Postern } from ${JSON.stringify(pathToFileURL(join(ROOT, 'dist/index.js')).href)};
    await new Postern('a', { logger: false }).run({ host: '127.0.0.1', port: 0 });
    process.on('SIGTERM', () => setTimeout(() => (console.log('still here'), process.exit(7)), 1000));
    process.on('exit', (code) => console.log(code));
    console.log(process.pid);`);
  const { KUBERNETES_SERVICE_HOST: _host, DRAIN_DELAY: _delay, ...rest } = process.env;
  const tsx = join(ROOT, 'test/node_modules/tsx/dist/cli.mjs');
  const parent = spawn(process.execPath, [tsx, ...args, file], { env: { ...rest, ...env } });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [pid] = await once(parent.stdout, 'data');
  process.kill(Number(pid), 'SIGTERM');
  const [said] = await once(parent.stdout, 'data');
  expect(String(said).split('\n')[0]).toBe(String(outcome));
});
