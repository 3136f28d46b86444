/**
 * A process whose stderr nobody reads any more.
 *
 * @module-tag package
 */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const DIST = fileURLToPath(new URL('../../dist/index.js', import.meta.url));

/** Starts a script that sends its URL, and closes its stderr at our end. */
async function startDeaf(script: string): Promise<{ url: string; exited: Promise<unknown[]>; kill: () => void }> {
  const child = spawn(
    process.execPath,
    ['--input-type=module', '--eval', `import { Postern } from ${JSON.stringify(DIST)};\n${script}`],
    { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  const [url] = (await Promise.race([once(child, 'message'), exited])) as [string];
  child.stderr?.destroy();
  return { url, exited, kill: () => void child.kill() };
}

test('a logged 5xx does not end the process when the reader of stderr has gone', async () => {
  const { url, exited, kill } = await startDeaf(`
    const app = new Postern('deaf').get('/', () => { throw new Error('boom'); });
    process.send((await app.listen({ host: '127.0.0.1', port: 0 })).url);
  `);
  for (let i = 0; i < 5; i += 1) expect((await fetch(url)).status).toBe(500);
  kill();
  expect(await exited).toEqual([null, 'SIGTERM']);
});

test("another's failing write to stderr still ends the process, as it would without us", async () => {
  const { url, exited } = await startDeaf(`
    const app = new Postern('deaf').get('/', () => { throw new Error('boom'); }).get('/other', () => { process.stderr.write('mine'); });
    process.send((await app.listen({ host: '127.0.0.1', port: 0 })).url);
  `);
  expect((await fetch(url)).status).toBe(500);
  await fetch(`${url}/other`).catch(() => undefined);
  const [code] = await exited;
  expect(code).not.toBe(0);
  expect(code).not.toBe(null);
});

test("another's failing write to stderr goes to whoever listens for it", async () => {
  const { url } = await startDeaf(`
    let heard = 0;
    process.stderr.on('error', () => { heard += 1; });
    const app = new Postern('deaf').get('/', () => { throw new Error('boom'); }).get('/heard', async () => {
      const before = heard;
      process.stderr.write('mine');
      await new Promise((resolve) => setImmediate(resolve));
      return heard - before;
    });
    process.send((await app.listen({ host: '127.0.0.1', port: 0 })).url);
  `);
  expect((await fetch(url)).status).toBe(500);
  expect(await (await fetch(`${url}/heard`)).json()).toBe(1);
});

test('a line right before the process ends is written, as text', () => {
  const script = `import { Postern } from ${JSON.stringify(DIST)};
    const app = new Postern('users').get('/', (ctx) => { ctx.log.error('last words'); process.exit(0); });
    await app.request('/');`;
  const args = ['-c', `exec "$0" --input-type=module -e "$1" 2>&1`, process.execPath, script];
  expect(execFileSync('sh', args, { env: { ...process.env, LOG_FORMAT: 'text' }, encoding: 'utf8' }))
    .toMatch(/ ERROR users last words /);
});
