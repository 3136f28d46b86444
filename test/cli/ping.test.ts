/**
 * `postern ping`: real meshes drawn in every format, and answers that nobody should trust.
 *
 * @module-tag package
 * @module-tag slow
 */

import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { runCommand, runOnTerminal, runProcess } from '../support/command.js';
import { drawnTexts, parseDot, parseMermaid } from '../support/drawing-parsers.js';
import { startMesh } from '../support/mesh.js';
import { startPeer, startRawPeer } from '../support/peer.js';
import { freePort } from '../support/ports.js';

const TIME = /\d+ ms/g;

/** Five services, of which one is down; `stock` is asked by two. */
async function startShop(): Promise<{ shop: string }> {
  const mail = `mail=http://127.0.0.1:${await freePort()}`;
  const { shop } = await startMesh({
    shop: ['billing', 'users', mail],
    billing: ['stock', 'users'],
    users: ['stock'],
    stock: [],
  });
  return { shop: shop.url };
}

test('draws a mesh with a service that is down as a tree, with status and time for each edge', async () => {
  const { shop } = await startShop();
  const { code, stdout, stderr } = await runProcess(['ping', `${shop}/shop/`, '--depth', '3']);
  expect([code, stderr]).toEqual([1, '']);
  expect(stdout.replace(TIME, '<time>')).toBe(`shop  200  <time>
├─ billing  200  <time>
│  ├─ stock  200  <time>
│  └─ users  200  <time>
│     └─ stock  200  <time>
├─ users  200  <time>
│  └─ stock  200  <time>
└─ mail  503  <time>  mail is unreachable
`);
});

test('goes down as far as it is told, three levels unless told', async () => {
  const { shop } = await startShop();
  const { a } = await startMesh({ a: ['b'], b: ['a'] });
  expect((await runCommand(['ping', `${a.url}/a/`])).stdout.match(/\b[ab]  200/g)).toHaveLength(4);
  const lines = async (depth: string): Promise<string[]> =>
    (await runCommand(['ping', `${shop}/shop/`, '--depth', depth])).stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/ .*$/, ''));
  expect(await lines('0')).toEqual(['shop']);
  expect(await lines('1')).toHaveLength(4);
  expect((await runCommand(['ping', `${shop}/shop/`, '--depth', '0'])).code).toBe(0);
});

test(
  'draws a mesh as mermaid and as dot, each service once, and what failed apart',
  { tags: ['graphviz'] },
  async () => {
    const { shop } = await startShop();
    for (const [format, parse] of [
      ['mermaid', parseMermaid],
      ['dot', parseDot],
    ] as const) {
      const { code, stdout, stderr } = await runCommand([
        'ping', `${shop}/shop/ping/`, '--depth', '3', '--format', format,
      ]);
      expect([code, stderr]).toEqual([1, '']);
      const { nodes, edges } = parse(stdout);
      expect(nodes.map((label) => label.replace(TIME, '<time>')).sort())
        .toEqual(['billing', 'mail', 'shop (200, <time>)', 'stock', 'users']);
      expect(
        edges
          .map(
            ({ from, to, label, failed }) =>
              `${from.replace(/ .*/, '')} ${to} ${label.replace(TIME, '<time>')}${failed ? ' failed' : ''}`,
          )
          .sort(),
      ).toEqual([
        'billing stock 200, <time>',
        'billing users 200, <time>',
        'shop billing 200, <time>',
        'shop mail 503, <time> failed',
        'shop users 200, <time>',
        'users stock 200, <time>',
      ]);
    }
  },
);

test('the settings of services in the environment are not those of the command', async () => {
  const { a } = await startMesh({ a: [] });
  const env = {
    SERVICE_CONNECTIONS: 'a=nonsense',
    REQUIRED_SERVICE_CONNECTIONS: 'a=http://127.0.0.1:1',
    SERVICE_URL_TEMPLATE: 'nonsense',
  };
  expect(await runProcess(['ping', `${a.url}/a/`, '--depth', '1'], { env })).toMatchObject({ code: 0, stderr: '' });
});

test('--json is the ping document itself', async () => {
  const { shop } = await startShop();
  for (const flags of [['--json'], ['--format', 'json'], ['--json', '--format=json']]) {
    const { code, stdout } = await runCommand(['ping', `${shop}/shop/`, '--depth', '2', ...flags]);
    expect(code).toBe(1);
    const pong = {
      response: { response: 'pong', process_time: expect.stringMatching(/^\d+ ms$/) },
      status_code: 200,
      request_time: expect.stringMatching(/^\d+ ms$/),
    };
    expect(JSON.parse(stdout)).toMatchObject({
      response: {
        billing: { response: { response: { stock: pong, users: pong } } },
        users: { response: { response: { stock: pong } } },
        mail: { status_code: 503, response: { description: 'mail is unreachable' } },
      },
      process_time: expect.stringMatching(/^\d+ ms$/),
    });
  }
});

test('a mesh that answers is exit code 0 in every format', { tags: ['graphviz'] }, async () => {
  const { a } = await startMesh({ a: ['b'], b: ['c', 'a'], c: ['a'] });
  for (const format of ['tree', 'json', 'mermaid', 'dot'])
    expect((await runCommand(['ping', `${a.url}/a/`, '--depth', '4', '--format', format])).code).toBe(0);
  const { edges } = parseDot((await runCommand(['ping', `${a.url}/a/`, '--depth', '5', '--format', 'dot'])).stdout);
  expect(edges.map(({ from, to }) => `${from[0]}${to[0]}`).sort()).toEqual(['ab', 'ba', 'bc', 'ca']);
});

test('asks the ping endpoint, whichever way the URL names the service', async () => {
  const { requests, url } = await startPeer((_req, res) =>
    res.setHeader('content-type', 'application/json').end('{"response":"pong","process_time":"1 ms"}'),
  );
  const targets = {
    '/users': '/users/ping/',
    '/users/': '/users/ping/',
    '/users/ping': '/users/ping/',
    '/users/ping/': '/users/ping/',
    '/ping/': '/ping/ping/',
    '/ping/ping/': '/ping/ping/',
    '/v1/mesh/users/': '/v1/mesh/users/ping/',
    '/v1/mesh/users/ping/': '/v1/mesh/users/ping/',
  };
  for (const path of Object.keys(targets))
    expect((await runCommand(['ping', `${url}${path}`, '--depth', '2'])).code).toBe(0);
  expect(requests.map((request) => request.url)).toEqual(Object.values(targets).map((path) => `${path}?depth=2`));
});

test(
  'a service that cannot be reached, refuses, or is none, is a finding with its reason',
  { tags: ['graphviz'] },
  async () => {
    const peer = await startPeer((req, res) => {
      if (req.url?.startsWith('/moved/')) res.writeHead(302, { location: '/users/ping/?depth=1' }).end();
      else if (req.url?.startsWith('/page/')) res.setHeader('content-type', 'text/html').end('<h1>hello</h1>');
      else res.setHeader('content-type', 'application/json').end('{"response":"pong","process_time":"1 ms"}');
    });
    const { shop } = await startMesh({ shop: [] });
    const findings = [
      { url: `http://127.0.0.1:${await freePort()}/users/`,
        says: /^users  503  \d+ ms  users is unreachable \(ECONNREFUSED\)\n$/ },
      { url: `${shop.url}/other/`, says: /^other  404  \d+ ms  No route matches this path\.\n$/ },
      { url: `${peer.url}/moved/`, says: /^moved  302  \d+ ms  moved answered 302 with something else than a ping\n$/ },
      { url: `${peer.url}/page/`, says: /^page  502  \d+ ms  page answered 200 with something else than a ping\n$/ },
      { url: `${peer.url.replace('http:', 'https:')}/users/`, says: /^users  503  \d+ ms  users is unreachable/ },
    ];
    for (const { url, says } of findings) {
      const { code, stdout, stderr } = await runCommand(['ping', url, '--depth', '1']);
      expect([code, stderr], url).toEqual([1, '']);
      expect(stdout).toMatch(says);
    }
    expect(peer.requests.map((request) => request.url)).toEqual(['/moved/ping/?depth=1', '/page/ping/?depth=1']);

    const tooDeep = await runCommand(['ping', `${shop.url}/shop/`, '--depth', '6']);
    expect([tooDeep.code, tooDeep.stdout])
      .toEqual([1, expect.stringMatching(/^shop  400  \d+ ms  Invalid depth\. Allowed: 0 to 5\n$/)]);
    const down = await runCommand(['ping', `${shop.url}/other/`, '--depth', '1', '--json']);
    expect([down.code, JSON.parse(down.stdout)]).toEqual([
      1,
      {
        message: 'Not Found',
        description: 'No route matches this path.',
        error_code: { name: 'framework_error_unspecified', value: 999998 },
      },
    ]);
    for (const [format, parse] of [['mermaid', parseMermaid], ['dot', parseDot]] as const) {
      const { stdout } = await runCommand(['ping', `${shop.url}/other/`, '--depth', '1', '--format', format]);
      expect(parse(stdout)).toEqual({ nodes: [expect.stringMatching(/^other \(404, \d+ ms\)$/)], edges: [] });
    }
  },
);

test('a service that is silent or talks without end is a finding, in bounded time and space', async () => {
  const silent = await startPeer(() => undefined);
  const { code, stdout } = await runCommand(['ping', `${silent.url}/users/`, '--depth', '1', '--timeout', '50']);
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(/^users  504  \d+ ms  users did not answer within 100 ms\n$/),
  ]);

  const endless = await startRawPeer((_chunk, socket) =>
    repeat(socket, 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n', ' '.repeat(65_536)),
  );
  const endlessHead = await startRawPeer((_chunk, socket) =>
    repeat(socket, 'HTTP/1.1 200 OK\r\n', `x: ${'y'.repeat(1000)}\r\n`),
  );
  for (const { url } of [endless, endlessHead]) {
    const result = await runCommand(['ping', `${url}/users/`, '--depth', '1']);
    expect([result.code, result.stderr]).toEqual([1, '']);
    expect(result.stdout).toMatch(/^users  502 /);
  }
});

/** Sends a text again and again, for as long as it is read. */
function repeat(socket: Socket, first: string, text: string): undefined {
  const more = (error?: Error | null): void => {
    if (error === undefined || error === null) socket.write(text, more);
  };
  socket.write(first, more);
}

/** A service that answers every ping with this. */
async function startLiar(body: string): Promise<string> {
  const { url } = await startPeer((_req, res) => res.setHeader('content-type', 'application/json').end(body));
  return `${url}/users/`;
}

const pong = (time = '1 ms'): object => ({ response: 'pong', process_time: time });
const HOSTILE = [
  '\u001b[2J\u001b]0;owned\u0007', '\u009b31m', 'a\nb\r\n└─ fake  200', '\u202egnp', '\u2028', '\u{e0041}', '\ud800',
  '\u0000', '\u007f',
  'quote " quote', "it's", '\\', 'back\\"slash', '\\N\\G\\l', '"]; n0 --> n1', '"]; shop -> evil; "', '<b>bold</b>',
  '&amp;', '&#34;', '#quot;', '#34;', '%%{init: {}}%%', '%% comment', '`code`', '|pipe|', '-->', 'end', '', ' ', '{}',
  '--', '__proto__', 'constructor', 'näme', '😀',
];

test(
  'names and texts of the mesh neither steer the terminal nor leave their quotes',
  { tags: ['graphviz'] },
  async () => {
    const response = Object.fromEntries(
      HOSTILE.map((name, index) => [
        name,
        index % 2 === 0
          ? { response: pong(), status_code: 200, request_time: `${name} ms` }
          : {
              response: { message: name, description: name, error_code: { name, value: 1 } },
              status_code: 503,
              request_time: '2 ms',
            },
      ]),
    );
    const url = await startLiar(JSON.stringify({ response, process_time: '\u001b[31m' }));
    const shown = HOSTILE.map((name) =>
      (name === '' ? '?' : name).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) =>
        [...Array(char.length).keys()].map((i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
      ),
    );
    const ping = async (format: string): Promise<string> => {
      const { code, stdout, stderr } = await runCommand(['ping', url, '--depth', '1', '--format', format]);
      expect([code, stderr]).toEqual([1, '']);
      expect(stdout).toMatch(/^(?:[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*\n)+$/u);
      return stdout;
    };
    expect((await ping('tree')).trimEnd().split('\n')).toHaveLength(HOSTILE.length + 1);
    expect(JSON.parse(await ping('json'))).toEqual({ response, process_time: '\u001b[31m' });
    const dot = await ping('dot');
    for (const { nodes, edges } of [parseMermaid(await ping('mermaid')), parseDot(dot)]) {
      expect(nodes.slice(1).sort()).toEqual([...shown].sort());
      expect(new Set(edges.map(({ from }) => from))).toEqual(new Set([nodes[0]]));
      expect(edges.map(({ to }) => to).sort()).toEqual([...shown].sort());
    }
    // Text that looks like an entity stays one in Graphviz's SVG, and a blank label is not drawn.
    expect(drawnTexts(dot)).toEqual(
      expect.arrayContaining(shown.filter((name) => name !== ' ' && !/&#?\w+;/.test(name))),
    );

    const terminal = (await runOnTerminal(['ping', url, '--depth', '1'])).stdout.replace(/\u001b\[(?:31|32|39)m/g, '');
    const [plain = '', own = ''] = [await ping('tree'), terminal].map((text) => text.replace(/^users  200  \d+ ms/, ''));
    expect(own).toBe(plain);
  },
);

test(
  'an edge that was asked several times is drawn once for each status, with its first time',
  { tags: ['graphviz'] },
  async () => {
    const entry = (time: number, status: number, below: object): object => ({
      response: status === 200 ? { response: below, process_time: '1 ms' } : {},
      status_code: status,
      request_time: `${time} ms`,
    });
    const response = { a: entry(1, 200, { users: entry(2, 200, { a: entry(3, 200, { users: entry(4, 504, {}) }) }) }) };
    const url = await startLiar(JSON.stringify({ response, process_time: '1 ms' }));
    for (const [format, parse] of [['mermaid', parseMermaid], ['dot', parseDot]] as const) {
      const { edges } = parse((await runCommand(['ping', url, '--depth', '5', '--format', format])).stdout);
      expect(edges.map(({ to, label }) => `${to.replace(/ .*/, '')}: ${label}`).sort())
        .toEqual(['a: 200, 1 ms', 'users: 200, 2 ms', 'users: 504, 4 ms']);
    }
  },
);

const shapes = [
  { what: 'nothing', body: '' },
  { what: 'no JSON', body: 'pong' },
  { what: 'an array', body: '[]' },
  { what: 'null', body: 'null' },
  { what: 'no process time', body: '{"response":"pong"}' },
  { what: 'another word', body: '{"response":"ping","process_time":"1 ms"}' },
  { what: 'a list of services', body: '{"response":[],"process_time":"1 ms"}' },
  { what: 'arrays in arrays', body: '['.repeat(200_000) },
  { what: 'arrays in arrays that end', body: `${'['.repeat(200_000)}${']'.repeat(200_000)}` },
];
test.for(shapes)('$what is no ping', async ({ body }) => {
  const { code, stdout, stderr } = await runCommand(['ping', await startLiar(body), '--depth', '1']);
  expect([code, stderr]).toEqual([1, '']);
  expect(stdout).toMatch(
    /^users  502  \d+ ms  users answered (?:200 with something else than a ping|with invalid JSON)\n$/,
  );
});

test('one odd entry is a finding and hides no other', async () => {
  const good = { response: pong(), status_code: 200, request_time: '1 ms' };
  const odd = {
    a: null,
    b: 7,
    c: {},
    d: { ...good, status_code: '200' },
    e: { ...good, response: 'pong' },
    f: { ...good, request_time: 3 },
    g: { ...good, status_code: 1e300 },
    h: { ...good, status_code: 503 },
  };
  const { code, stdout } = await runCommand([
    'ping',
    await startLiar(JSON.stringify({ response: { ...odd, good }, process_time: '1 ms' })),
    '--depth',
    '1',
  ]);
  expect(code).toBe(1);
  expect(stdout.split('\n').slice(1, -1).map((line) => line.slice(3).split('  ').slice(0, 2).join(' ')))
    .toEqual(['a 502', 'b 502', 'c 502', 'd 502', 'e 502', 'f 200', 'g 502', 'h 503', 'good 200']);
});

test('nothing below the depth that was asked for is read', async () => {
  let body: object = pong();
  for (let level = 0; level < 5; level += 1)
    body = { response: { next: { response: body, status_code: 200, request_time: '1 ms' } }, process_time: '1 ms' };
  const url = await startLiar(JSON.stringify(body));
  expect(await runCommand(['ping', url, '--depth', '5'])).toMatchObject({ code: 0 });
  const { code, stdout } = await runCommand(['ping', url, '--depth', '2']);
  expect([code, stdout.trimEnd().split('\n').length]).toEqual([1, 3]);

  const entry = '{"status_code":200,"request_time":"1 ms","response":{"process_time":"1 ms","response":{"next":';
  const deep = await startLiar(
    `{"process_time":"1 ms","response":{"next":${entry.repeat(20_000)}{}${'}}}'.repeat(20_000)}}}`,
  );
  for (const format of ['tree', 'json', 'mermaid', 'dot']) {
    const result = await runCommand(['ping', deep, '--depth', '100', '--format', format]);
    expect([result.code, result.stderr]).toEqual([1, '']);
    expect(result.stdout.length).toBeLessThan(1_000_000);
  }
});

test('draws in colour on a terminal, unless NO_COLOR is set', async () => {
  const args = ['ping', `http://127.0.0.1:${await freePort()}/users/`, '--depth', '1'];
  expect((await runOnTerminal(args)).stdout).toMatch(/^users  \u001b\[31m503\u001b\[39m  /);
  expect(await runOnTerminal(args, { env: { NO_COLOR: '1' } }))
    .toEqual({ code: 1, stderr: '', stdout: expect.stringMatching(/^users  503  /) });
});
