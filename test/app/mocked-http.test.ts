/**
 * A request in memory asks no network, so what tools put in place of the client of `node:http` does not concern it.
 *
 * @module-tag package
 */

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Replaces the client as a tool does, before Postern is loaded. */
const TOOLS: Readonly<Record<string, string>> = {
  'nock 14': `
    const { ClientRequest } = http;
    function Replaced() { ClientRequest.call(this, { host: '127.0.0.1', port: 1 }); }
    inherits(Replaced, ClientRequest);
    http.ClientRequest = Replaced;
    http.request = () => { throw new Error('Disallowed net connect'); };`,
  'msw 2': `
    const construct = () => { throw new Error('intercepted'); };
    http.ClientRequest = new Proxy(http.ClientRequest, { construct });
    http.request = new Proxy(http.request, { apply: construct });`,
};

test.for(Object.keys(TOOLS))('app.request() answers beside %s', (tool) => {
  const script = `
    import http from 'node:http';
    import { inherits } from 'node:util';
    ${TOOLS[tool]}
    const { Postern } = await import('postern');
    const app = new Postern('users', { logger: false }).post('/', (ctx) => ctx.text());
    console.log(await (await app.request('/', { method: 'POST', body: 'hello' })).text());`;
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const args = ['--input-type=module', '-e', script];
  expect(execFileSync(process.execPath, args, { cwd, encoding: 'utf8', timeout: 20_000 })).toBe('hello\n');
});
