/**
 * `postern openapi`: the document, and what `--check` finds.
 *
 * @module-tag package
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { OpenApiDocument } from 'postern/openapi';
import { createProject, runCommand } from '../support/command.js';

const SCHEMA = `const schema = (json) => ({ '~standard': { version: 1, vendor: 'mine', validate: (value) => ({ value }), jsonSchema: { input: () => json, output: () => json } } });`;
const moduleOf = (routes: string): string =>
  `import { Postern } from 'postern';\n${SCHEMA}\nconst app = new Postern('users', { version: '1.0.0' });\n${routes}\nexport default app;\n`;
const USER = `{ type: 'object', required: ['id'], properties: { id: { type: 'string' }, name: { type: 'string' } } }`;
const ROUTES = `app.get('/users/:id', { public: true, response: schema(${USER}) }, () => 1);\napp.post('/users', { body: schema(${USER}) }, () => 1);`;

test('prints the document, and the public part of it in another version', async () => {
  const cwd = createProject({ 'app.mjs': moduleOf(ROUTES) });
  const all = await runCommand(['openapi', 'app.mjs'], { cwd });
  expect([all.code, all.stderr]).toEqual([0, '']);
  const document = JSON.parse(all.stdout) as OpenApiDocument;
  expect(document).toMatchObject({ openapi: '3.1.1', info: { title: 'users', version: '1.0.0' } });
  expect(Object.keys(document.paths)).toEqual(['/users/{id}', '/users']);
  const some = await runCommand(
    [
      'openapi',
      'app.mjs',
      '--public',
      '--version',
      '3.2',
      '--server',
      'https://a.example',
      '--server',
      'https://b.example/v1',
    ],
    { cwd },
  );
  expect(JSON.parse(some.stdout))
    .toMatchObject({ openapi: '3.2.0', servers: [{ url: 'https://a.example' }, { url: 'https://b.example/v1' }] });
  expect(Object.keys((JSON.parse(some.stdout) as OpenApiDocument).paths)).toEqual(['/users/{id}']);
});

test('--check prints nothing while nothing broke, and each break with exit code 1', async () => {
  const cwd = createProject({
    'app.mjs': moduleOf(ROUTES),
    'more.mjs': moduleOf(`${ROUTES}\napp.get('/new', () => 1);`),
    'less.mjs': moduleOf(ROUTES.replace(/^app.get.*$/m, '')),
  });
  writeFileSync(join(cwd, 'saved.json'), (await runCommand(['openapi', 'app.mjs'], { cwd })).stdout);
  for (const file of ['app.mjs', 'more.mjs'])
    expect(await runCommand(['openapi', file, '--check', 'saved.json'], { cwd })).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
  expect(await runCommand(['openapi', 'less.mjs', '--check', 'saved.json'], { cwd }))
    .toEqual({ code: 1, stdout: 'GET /users/{id} was removed\n', stderr: '' });
});

test('what a document can not say is a finding without a document; the rest is wrong usage', async () => {
  const cwd = createProject({
    'app.mjs': moduleOf(`app.get('/n/:a', () => 1).get('/n/:b(\\\\d+)', () => 1);`),
    'text.json': '{',
    'other.json': '{}',
  });
  const { code, stdout, stderr } = await runCommand(['openapi', 'app.mjs'], { cwd });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain('are one templated path');
  for (const args of [
    ['--version', '3.0'],
    ['--server', '/v1'],
    ['--check', 'none.json'],
    ['--check', 'text.json'],
    ['--check', 'other.json'],
    ['--publik'],
  ])
    expect(await runCommand(['openapi', 'app.mjs', ...args], { cwd }), args.join(' ')).toMatchObject({
      code: 2,
      stdout: '',
    });
  expect(await runCommand(['openapi'], { cwd })).toMatchObject({ code: 2 });
});
