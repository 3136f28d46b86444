/**
 * `postern errors`: the catalogue of one application, and whether several agree.
 *
 * @module-tag package
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createProject, runCommand } from '../support/command.js';

const MODULE = `import { ApiError, defineErrorCodes, NotFound, Postern } from 'postern';
const Codes = defineErrorCodes({ user_gone: 20001, unused: 20002 });
const Other = defineErrorCodes({ undeclared: 20003 });
class UserGone extends ApiError {
  static statusCode = 410;
  static description = 'The user is gone';
  static errorCode = Codes.user_gone;
}
class Undeclared extends ApiError {
  static statusCode = 409;
  static message = 'No.';
  static errorCode = Other.undeclared;
}
const app = new Postern('users', { errorCodes: [Codes] });
app.get('/users/:id', { errors: [UserGone, NotFound] }, () => 1);
app.put('/users/:id', { errors: [UserGone, Undeclared] }, () => 1);
export default app;
`;
const ROWS = [
  { name: 'user_gone', value: 20001, status: 410, description: 'The user is gone',
    routes: ['GET /users/:id', 'PUT /users/:id'] },
  { name: 'unused', value: 20002, status: null, description: null, routes: [] },
  { name: 'undeclared', value: 20003, status: 409, description: 'No.', routes: ['PUT /users/:id'] },
];

test('prints the codes of the option and those that routes declare, as text and as JSON', async () => {
  const cwd = createProject({ 'app.mjs': MODULE });
  const json = await runCommand(['errors', 'app.mjs', '--json'], { cwd });
  expect([json.code, JSON.parse(json.stdout)]).toEqual([0, ROWS]);
  const { code, stdout } = await runCommand(['errors', 'app.mjs'], { cwd });
  expect([code, stdout]).toEqual([0, `VALUE  NAME        STATUS  DESCRIPTION       ROUTES
20001  user_gone   410     The user is gone  GET /users/:id, PUT /users/:id
20002  unused      -       -                 -
20003  undeclared  409     No.               PUT /users/:id
`]);
});

const file = (...codes: [string, number][]): string =>
  JSON.stringify(codes.map(([name, value]) => ({ name, value, status: null, description: null, routes: [] })));
const checks: { name: string; files: Record<string, string>; stdout: string }[] = [
  { name: 'services that share a code',
    files: { 'a.json': file(['gone', 1], ['slow', 2]), 'b.json': file(['gone', 1]) }, stdout: '' },
  { name: 'one value with two names', files: { 'a.json': file(['gone', 1]), 'b.json': file(['lost', 1]) },
    stdout: '1 is gone in a.json and lost in b.json\n' },
  { name: 'one name with two values', files: { 'a.json': file(['gone', 1]), 'b.json': file(['gone', 2]) },
    stdout: 'gone is 1 in a.json and 2 in b.json\n' },
  { name: 'both, over three',
    files: { 'a.json': file(['gone', 1]), 'b.json': file(['slow', 2]), 'c.json': file(['gone', 2]) },
    stdout: 'gone is 1 in a.json and 2 in c.json\n2 is slow in b.json and gone in c.json\n' },
  {
    name: "the framework's own value and name",
    files: { 'a.json': file(['mine', 999400], ['framework_timeout', 5]) },
    stdout: `999400 is framework_invalid_query_params in the framework and mine in a.json
framework_timeout is 999504 in the framework and 5 in a.json\n`,
  },
];
test.for(checks)('--check over $name', async ({ files, stdout }) => {
  const cwd = createProject(files);
  expect(await runCommand(['errors', '--check', ...Object.keys(files)], { cwd }))
    .toEqual({ code: stdout === '' ? 0 : 1, stdout, stderr: '' });
  const json = await runCommand(['errors', '--json', '--check', ...Object.keys(files)], { cwd });
  const clashes = stdout.split('\n').filter(Boolean);
  expect([json.code, JSON.parse(json.stdout)]).toEqual([stdout === '' ? 0 : 1, { clashes }]);
});

const declaring = (codes: string): string => `import { ApiError, defineErrorCodes, Postern } from 'postern';
const app = new Postern('users');
const types = ${codes}.map((code) => class extends ApiError {
  static errorCode = Object.values(defineErrorCodes(code))[0];
});
app.get('/', { errors: types }, () => 1);
export default app;
`;
test.for<[codes: string, finding: string]>([
  ['[{ gone: 1 }, { lost: 1 }]', '1 is gone in users and lost in users'],
  ['[{ gone: 1 }, { gone: 2 }]', 'gone is 1 in users and 2 in users'],
  ['[{ mine: 999400 }]', '999400 is framework_invalid_query_params in the framework and mine in users'],
  ['[{ framework_timeout: 5 }]', 'framework_timeout is 999504 in the framework and 5 in users'],
])('codes that routes declare, %s, are a finding: %s', async ([codes, finding]) => {
  const cwd = createProject({ 'app.mjs': declaring(codes) });
  for (const json of [[], ['--json']])
    expect(await runCommand(['errors', 'app.mjs', ...json], { cwd })).toEqual({
      code: 1,
      stdout: '',
      stderr: `postern: ${finding}; change one of them\n`,
    });
});

test('files that hold something else are wrong usage', async () => {
  const cwd = createProject({ 'text.json': '{', 'other.json': '[{"name": 1}]' });
  for (const args of [
    ['--check'],
    ['--check', 'none.json'],
    ['--check', 'text.json'],
    ['--check', 'other.json'],
    [],
    ['a.mjs', 'b.mjs'],
  ])
    expect(await runCommand(['errors', ...args], { cwd }), args.join(' ')).toMatchObject({ code: 2, stdout: '' });
});

test('what the command prints is what --check reads', async () => {
  const cwd = createProject({ 'app.mjs': MODULE });
  writeFileSync(join(cwd, 'saved.json'), (await runCommand(['errors', 'app.mjs', '--json'], { cwd })).stdout);
  expect(await runCommand(['errors', '--check', 'saved.json', 'saved.json'], { cwd }))
    .toEqual({ code: 0, stdout: '', stderr: '' });
});
