/**
 * `postern routes`: the table as text and JSON, and what `--check` finds.
 *
 * @module-tag package
 * @module-tag slow
 */

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMMAND, createProject, runCommand, runOnTerminal, runProcess, startCommand } from '../support/command.js';

/** A module with an application of these routes. */
function moduleOf(routes: string, after = ''): string {
  return `import { Postern, publicFacing } from 'postern';\nconst app = new Postern('users', { attachMonitorEndpoints: false });\n${routes}\nexport default app;\n${after}\n`;
}

const ROUTES = `
app.get('/users/:id', publicFacing({ params: ['q', 'page'] })((ctx) => ctx.params.id));
app.put('/users/:id', () => 1);
app.post('/n/:n(\\\\d+)', publicFacing({ params: [] })(() => 1));
app.delete('/files/*rest', publicFacing(() => 1));
`;
const ROWS = [
  { method: 'GET', path: '/users/:id', pattern: '^/users/([^/]+)$', public: true, params: ['q', 'page'] },
  { method: 'PUT', path: '/users/:id', pattern: '^/users/([^/]+)$', public: false, params: null },
  { method: 'POST', path: '/n/:n(\\d+)', pattern: '^/n/(\\d+)$', public: true, params: [] },
  { method: 'DELETE', path: '/files/*rest', pattern: '^/files/(.+)$', public: true, params: null },
];
const TABLE = `METHOD  PATH          PATTERN           SCOPE    QUERY
GET     /users/:id    ^/users/([^/]+)$  public   q, page
PUT     /users/:id    ^/users/([^/]+)$  private  any
POST    /n/:n(\\d+)    ^/n/(\\d+)$        public   none
DELETE  /files/*rest  ^/files/(.+)$     public   any
`;

test('prints the route table, and as JSON what router.routes has', async () => {
  const cwd = createProject({ 'app.mjs': moduleOf(ROUTES, 'console.error(JSON.stringify(app.router.routes));') });
  const text = await runProcess(['routes', 'app.mjs'], { cwd });
  expect([text.code, text.stdout]).toEqual([0, TABLE]);
  const { code, stdout, stderr } = await runCommand(['routes', './app.mjs', '--json'], { cwd });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual(ROWS);
  expect(JSON.parse(stderr)).toEqual(ROWS);
});

test('the monitoring endpoints are in the table as well', async () => {
  const cwd = createProject({
    'app.mjs': "import { Postern } from 'postern';\nexport default new Postern('users');\n",
  });
  expect((await runCommand(['routes', join(cwd, 'app.mjs')])).stdout).toMatch(/^GET +\/users\/ping\/ .* private /m);
});

const loadable = [
  { what: 'another copy of the package', file: 'app.mjs', text: moduleOf(ROUTES), copied: true },
  {
    what: 'CommonJS',
    file: 'app.cjs',
    text: moduleOf(ROUTES)
      .replace(/import (\{.*\}) from ('postern');/, 'const $1 = require($2);')
      .replace('export default', 'module.exports ='),
  },
  {
    what: 'CommonJS compiled from an ES module',
    file: 'app.cjs',
    text: moduleOf(ROUTES)
      .replace(/import (\{.*\}) from ('postern');/, 'const $1 = require($2);')
      .replace('export default', "Object.defineProperty(exports, '__esModule', { value: true });\nexports.default ="),
  },
  { what: 'a name with characters that a URL would change', file: 'a b%20#?.mjs', text: moduleOf(ROUTES) },
  { what: 'a module that listens', file: 'app.mjs', run: runProcess,
    text: moduleOf(ROUTES, "await app.run({ host: '127.0.0.1', port: 0 });") },
  {
    what: 'a module that listens on a port that is taken',
    file: 'app.mjs',
    run: runProcess,
    text: moduleOf(
      ROUTES,
      "const { port } = await app.listen({ host: '127.0.0.1', port: 0 });\nvoid new Postern('other').listen({ host: '127.0.0.1', port });\nawait new Promise((resolve) => setImmediate(resolve));",
    ),
  },
  {
    what: 'a module that exits when it cannot listen',
    file: 'app.mjs',
    run: runProcess,
    text: moduleOf(
      ROUTES,
      "const { port } = await app.listen({ host: '127.0.0.1', port: 0 });\nnew Postern('other').run({ host: '127.0.0.1', port }).catch(() => process.exit(1));",
    ),
  },
  { what: 'a module that exits soon', file: 'app.mjs', run: runProcess,
    text: moduleOf(ROUTES, 'process.nextTick(() => process.exit(0));') },
  { what: 'a module with a timer', file: 'app.mjs', run: runProcess,
    text: moduleOf(ROUTES, 'setInterval(() => {}, 1000);') },
];
test.for(loadable)('loads $what', async ({ file, text, copied, run = runCommand }) => {
  const cwd = createProject({ [file]: text }, copied);
  expect(await run(['routes', file], { cwd })).toEqual({ code: 0, stdout: TABLE, stderr: '' });
});

test('what a module prints goes to stderr', async () => {
  const cwd = createProject({ 'app.mjs': `console.log('one');\nprocess.stdout.write('two\\n');\n${moduleOf(ROUTES)}` });
  expect(await runProcess(['routes', 'app.mjs'], { cwd })).toEqual({ code: 0, stdout: TABLE, stderr: 'one\ntwo\n' });
});

const unloadable = [
  { what: 'is missing', text: undefined, says: /Cannot find module '.*app\.mjs'$/ },
  { what: 'throws', text: "throw new Error('no\\ndatabase');", says: /can't be loaded: no$/ },
  { what: 'throws no error', text: 'throw Object.create(null);', says: /can't be loaded: / },
  { what: 'has a syntax error', text: 'const a = ;', says: /can't be loaded: Unexpected token/ },
  { what: 'imports what is not there', text: "import 'nowhere';",
    says: /Cannot find package 'nowhere' imported from .*app\.mjs$/ },
  { what: 'exports nothing', text: '', says: /no Postern app as its default export; write: export default app$/ },
  { what: 'exports its application by a name',
    text: "import { Postern } from 'postern';\nexport const version = 1;\nexport const shop = new Postern('shop');",
    says: /no Postern app as its default export; write: export default shop$/ },
  { what: 'exports something else', text: 'export default { name: "users", router: { routes: {} } };',
    says: /no Postern app/ },
  { what: 'exports a class', text: "export { Postern as default } from 'postern';", says: /no Postern app/ },
  { what: 'exports rows that are none',
    text: 'export default { name: "users", router: { routes: [{ method: "GET" }] } };', says: /no Postern app/ },
  { what: 'has a getter that throws',
    text: "export default { name: 'users', get router() { throw new Error('broken getter'); } };",
    says: /broken getter/ },
  { what: 'ends the process', text: 'process.exit(0);', run: runProcess, says: /can't be loaded: it called process\.exit$/ },
  { what: 'waits for what never comes', text: 'await new Promise(() => {});', run: runProcess,
    says: /the module waits for what never comes$/ },
  { what: 'fails while it waits', run: runProcess,
    text: "setTimeout(() => { throw new Error('gone'); }, 1);\nawait new Promise(() => {});", says: /^postern: gone$/ },
];
test.for(unloadable)('a module that $what is one line on stderr and exit code 2', async ({ text, says, run = runCommand }) => {
  const cwd = createProject(text === undefined ? {} : { 'app.mjs': text });
  const { code, stdout, stderr } = await run(['routes', 'app.mjs'], { cwd });
  expect([code, stdout], stderr).toEqual([2, '']);
  expect(stderr).toMatch(/^postern: [^\p{Cc}]+\n$/u);
  expect(stderr.trimEnd()).toMatch(says);
});

const CHANGED = `
app.get('/users/:name', publicFacing({ params: ['page', 'q', 'sort'] })((ctx) => ctx.params.name));
app.put('/users/:name', publicFacing({ params: ['force'] })(() => 1));
app.post('/n/:n(\\\\d+)', publicFacing(() => 1));
app.delete('/files/*rest', () => 1);
app.get('/new', publicFacing(() => 1));
app.get('/private', () => 1);
`;

test('--check prints nothing while the public part is as it was saved', async () => {
  const renamed = ROUTES.replace("['q', 'page']", "['page', 'q', 'q']").replaceAll(':id', ':name')
    .replaceAll('ctx.params.id', '1').split('\n').reverse().join('\n');
  const cwd = createProject({
    'app.mjs': moduleOf(ROUTES),
    'same.mjs': moduleOf(`${renamed}app.get('/more', () => 1);`),
  });
  const { stdout } = await runCommand(['routes', 'app.mjs', '--json'], { cwd });
  writeFileSync(join(cwd, 'saved.json'), stdout);
  for (const file of ['app.mjs', 'same.mjs'])
    expect(await runCommand(['routes', file, '--check', 'saved.json'], { cwd })).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
  const none = await runCommand(['routes', 'same.mjs', '--check', 'saved.json', '--json'], { cwd });
  expect([none.code, JSON.parse(none.stdout)])
    .toEqual([0, { became_public: [], stopped_being_public: [], changed_params: [] }]);
});

test('--check prints what became public, stopped being public or changed its parameters, and exits with 1', async () => {
  const cwd = createProject({ 'app.mjs': moduleOf(CHANGED), 'saved.json': JSON.stringify(ROWS) });
  expect(await runProcess(['routes', 'app.mjs', '--check', 'saved.json'], { cwd })).toEqual({
    code: 1,
    stdout: `+ PUT /users/:name (^/users/([^/]+)$) became public (query: force)
+ GET /new (^/new$) became public (query: any)
- DELETE /files/*rest (^/files/(.+)$) stopped being public
~ GET /users/:name (^/users/([^/]+)$) changed its parameters: q, page → page, q, sort
~ POST /n/:n(\\d+) (^/n/(\\d+)$) changed its parameters: none → any
`,
    stderr: '',
  });
  const { code, stdout } = await runCommand(['routes', 'app.mjs', '--json', '--check', 'saved.json'], { cwd });
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toEqual({
    became_public: [
      { method: 'PUT', path: '/users/:name', pattern: '^/users/([^/]+)$', public: true, params: ['force'] },
      { method: 'GET', path: '/new', pattern: '^/new$', public: true, params: null },
    ],
    stopped_being_public: [ROWS[3]],
    changed_params: [
      { method: 'GET', path: '/users/:name', pattern: '^/users/([^/]+)$', before: ['q', 'page'],
        after: ['page', 'q', 'sort'] },
      { method: 'POST', path: '/n/:n(\\d+)', pattern: '^/n/(\\d+)$', before: [], after: null },
    ],
  });
});

const single = [
  { what: 'a route that became public', before: "app.get('/a', () => 1);",
    after: "app.get('/a', publicFacing(() => 1));", finding: '+ GET /a (^/a$) became public (query: any)\n' },
  { what: 'a route that was removed', before: "app.get('/a', publicFacing(() => 1));", after: '',
    finding: '- GET /a (^/a$) stopped being public\n' },
  { what: 'a parameter more', before: "app.get('/a', publicFacing({ params: [] })(() => 1));",
    after: "app.get('/a', publicFacing({ params: ['q'] })(() => 1));",
    finding: '~ GET /a (^/a$) changed its parameters: none → q\n' },
  { what: 'a parameter less', before: "app.get('/a', publicFacing({ params: ['q', 'p'] })(() => 1));",
    after: "app.get('/a', publicFacing({ params: ['p'] })(() => 1));",
    finding: '~ GET /a (^/a$) changed its parameters: q, p → p\n' },
  {
    what: 'another pattern',
    before: "app.get('/a/:b', publicFacing(() => 1));",
    after: "app.get('/a/:b(\\\\d+)', publicFacing(() => 1));",
    finding:
      '+ GET /a/:b(\\d+) (^/a/(\\d+)$) became public (query: any)\n- GET /a/:b (^/a/([^/]+)$) stopped being public\n',
  },
];
test.for(single)('--check finds $what', async ({ before, after, finding }) => {
  const cwd = createProject({ 'before.mjs': moduleOf(before), 'after.mjs': moduleOf(after) });
  writeFileSync(join(cwd, 'saved.json'), (await runCommand(['routes', 'before.mjs', '--json'], { cwd })).stdout);
  expect(await runCommand(['routes', 'after.mjs', '--check', 'saved.json'], { cwd }))
    .toEqual({ code: 1, stdout: finding, stderr: '' });
});

test('a terminal gets colours, unless NO_COLOR is set', async () => {
  const cwd = createProject({ 'app.mjs': moduleOf(CHANGED), 'saved.json': JSON.stringify(ROWS) });
  const args = ['routes', 'app.mjs', '--check', 'saved.json'];
  for (const NO_COLOR of [undefined, '']) {
    const { code, stdout } = await runOnTerminal(args, { cwd, env: { NO_COLOR } });
    expect(code).toBe(1);
    expect(stdout.match(/^\u001b\[\d+m[+~-].*\u001b\[39m$/gm)).toHaveLength(5);
  }
  for (const NO_COLOR of ['1', '0'])
    expect((await runOnTerminal(args, { cwd, env: { NO_COLOR } })).stdout).not.toContain('\u001b');
  expect((await runOnTerminal(['routes', 'app.mjs', '--json'], { cwd })).stdout).not.toContain('\u001b');
});

test('no colours without a terminal, whatever the environment asks for', async () => {
  const cwd = createProject({ 'app.mjs': moduleOf(CHANGED), 'saved.json': JSON.stringify(ROWS) });
  expect(
    (await runProcess(['routes', 'app.mjs', '--check', 'saved.json'], { cwd, env: { FORCE_COLOR: '1' } })).stdout,
  ).not.toContain('\u001b');
});

test('control characters of a path or a saved table never reach the terminal', async () => {
  const rows = [
    { method: 'GET', path: '/\u001b]0;owned\u0007', pattern: '^/\u009b2J$', public: true, params: ['\u202eq\n'] },
  ];
  const cwd = createProject({
    'app.mjs': `export default { name: 'users', router: { routes: ${JSON.stringify(rows)} } };`,
    'saved.json': JSON.stringify(rows),
    'empty.json': '[]',
    'empty.mjs': moduleOf(''),
  });
  for (const args of [
    ['app.mjs'],
    ['app.mjs', '--json'],
    ['app.mjs', '--check', 'empty.json'],
    ['empty.mjs', '--check', 'saved.json'],
  ]) {
    expect((await runCommand(['routes', ...args], { cwd })).stdout).toMatch(/^(?:[^\p{Cc}\p{Cf}]*\n)+$/u);
  }
  expect(JSON.parse((await runCommand(['routes', 'app.mjs', '--json'], { cwd })).stdout)).toEqual(rows);
});

const MANY = "for (let i = 0; i < 20000; i += 1) app.get(`/some/path/that/is/rather/long/${i}`, () => 1);";

test('a reader that has left is no error', async () => {
  const cwd = createProject({ 'app.mjs': moduleOf(MANY) });
  const child = startCommand(['routes', 'app.mjs', '--json'], { cwd });
  let stderr = '';
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  child.stdout.once('data', () => child.stdout.destroy());
  const [code] = (await once(child, 'close')) as [number | null];
  expect([code, stderr]).toEqual([0, '']);

  const piped = spawnSync('sh', ['-c', `'${process.execPath}' '${COMMAND}' routes app.mjs | head -n 1`], {
    cwd,
    encoding: 'utf8',
  });
  expect([piped.stdout, piped.stderr]).toEqual([expect.stringMatching(/^METHOD .*\n$/), '']);
});

test('a long table arrives whole, and output that is lost is an error', async () => {
  const cwd = createProject({ 'app.mjs': moduleOf(MANY) });
  expect(JSON.parse((await runProcess(['routes', 'app.mjs', '--json'], { cwd })).stdout)).toHaveLength(20_000);
  const full = spawnSync('sh', ['-c', `'${process.execPath}' '${COMMAND}' routes app.mjs > /dev/full`], {
    cwd,
    encoding: 'utf8',
  });
  expect([full.status, full.stderr]).toEqual([2, expect.stringMatching(/^postern: ENOSPC[^\n]*\n$/)]);
});

test('saved tables are read as the command writes them', async () => {
  const cwd = createProject({ 'app.mjs': moduleOf(ROUTES) });
  spawnSync('sh', ['-c', `'${process.execPath}' '${COMMAND}' routes app.mjs --json > saved.json`], { cwd });
  expect(JSON.parse(readFileSync(join(cwd, 'saved.json'), 'utf8'))).toEqual(ROWS);
});
