/**
 * Published advisories about routing and regular expressions, one by one: T-01 to T-05.
 *
 * Other parts: the analysis of constraints is in unit/constraint and property/constraint (T-03), spellings through real
 * gateways in gateway/equivalence and gateway/random-tables (T-04), other forms of a target in wire/targets,
 * http/routing and http/bad-input (T-05).
 */

import { describe, expect, test } from 'vitest';
import { publicFacing, Router, Unauthorized, type Middleware, type Postern } from 'postern';
import { assertGrowth, timed } from '../support/growth.js';
import { rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

/** What makes a matcher that tries readings try all of them: `n` characters or so, and an end that does not fit. */
const HOSTILE: readonly ((n: number) => string)[] = [
  (n) => `/${'-'.repeat(n)}a`,
  (n) => `/${'a'.repeat(n)}!`,
  (n) => `/${'a-'.repeat(n / 2)}!`,
  (n) => `/${'a.'.repeat(n / 2)}/`,
  (n) => `/a${'%'.repeat(n)}`,
  (n) => `/${'%2D'.repeat(n / 3)}a`,
  (n) => `/${'%2F'.repeat(n / 3)}`,
  (n) => '/'.repeat(n),
  (n) => `${'/a'.repeat(n / 2)}/`,
  (n) => `/x/${'0'.repeat(n)}x`,
];
const LENGTH = 16_000;

/** Asks for every hostile path with and without its route's method, and matches the pattern that the router reports. */
async function assertMatchesLinearly(path: string): Promise<void> {
  const router = new Router<string>();
  const { pattern } = router.add('GET', path, path);
  const regexp = new RegExp(pattern, 's');
  for (const make of HOSTILE) {
    const targets = new Map([LENGTH, 4 * LENGTH].map((n) => [n, make(n)]));
    const targetOf = (n: number): string => targets.get(n) ?? '';
    const what = `${path} with ${targetOf(LENGTH).slice(0, 12)}`;
    await assertGrowth(`find of ${what}`, (n) => timed(() => attempt(() => router.find('GET', targetOf(n)))), LENGTH);
    await assertGrowth(`methods of ${what}`, (n) => timed(() => attempt(() => router.allowedMethods(targetOf(n)))), LENGTH);
    await assertGrowth(`pattern of ${what}`, (n) => timed(() => regexp.test(targetOf(n))), LENGTH);
  }
}

/** A malformed escape throws; here only the time counts. */
function attempt(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
  }
}

function isRefused(path: string): boolean {
  try {
    new Router<string>().add('GET', path, path);
    return false;
  } catch (error) {
    expect(error, path).toBeInstanceOf(TypeError);
    return true;
  }
}

const SEPARATORS: readonly (readonly [text: string, escaped: string])[] = [['-', '-'], ['.', '\\.'], ['_', '_'], ['~', '~'], [':', ':']];
const parameters = SEPARATORS.flatMap(([text, escaped]) => [2, 3, 4].map((count) => ({ text, escaped, count })));

describe('T-01: several parameters in a segment (CVE-2024-45296, CVE-2024-52798, CVE-2026-4867, CVE-2024-45813)', () => {
  test.for(parameters)('$count parameters between "$text" are no segment, and the expression that others make of them is refused', ({ text, escaped, count }) => {
    const names = Array.from({ length: count }, (_, i) => `:p${i}`);
    expect(isRefused(`/${names.join(text)}`)).toBe(true);
    expect(isRefused(`/x/${names.join(text)}/y`)).toBe(true);
    expect(isRefused(`/:x(${names.map(() => '([^/]+?)').join(escaped)})`)).toBe(true);
  });

  test.for(parameters)('$count parts between "$text", each without it, match in linear time', async ({ text, escaped, count }) => {
    await assertMatchesLinearly(`/:x(${Array.from({ length: count }, () => `[^${text}]+`).join(escaped)})`);
  });

  const misplaced = ['/*foo-*bar-:baz', '/x/*a-:b/*c/y', '/*a/*b', '/*a/x', '/:a*b', '/*a:b', '/x-/*a-b'];
  test.for(misplaced)('%s, a wildcard that is not the last segment, is refused (CVE-2026-4923)', (path) => {
    expect(isRefused(path)).toBe(true);
  });

  test.for([
    '/:a', '/:a/:b/:c/:d', '/*rest', '/:a/:b/*rest', '/x/:n(\\d+)', '/:file(.+\\.png)', '/:slug([a-z0-9]+(?:-[a-z0-9]+)*)', '/:x([^-]+(?:-[^-]+){0,3})',
    '/:x([^-]+(?:-[^-]+)?)/*rest',
  ])('%s matches in linear time', async (path) => {
    await assertMatchesLinearly(path);
  });
});

/** Twenty parts that may be left out, in the spellings of other routers, and as a constraint. */
const OPTIONAL: readonly { what: string; path: (n: number) => string; refused: boolean }[] = [
  { what: 'groups in braces', path: (n) => `/a${'{-b}'.repeat(n)}`, refused: false },
  { what: 'segments in braces', path: (n) => `/a${'{/b}'.repeat(n)}`, refused: false },
  { what: 'groups in parentheses', path: (n) => `/a${'(b)?'.repeat(n)}`, refused: false },
  { what: 'parameters in braces', path: (n) => `/a${Array.from({ length: n }, (_, i) => `{/:p${i}}`).join('')}`, refused: true },
  { what: 'parameters with a question mark', path: (n) => Array.from({ length: n }, (_, i) => `/:p${i}?`).join(''), refused: true },
  {
    what: 'parts of one constraint that differ',
    path: (n) => `/:x(${Array.from({ length: n }, (_, i) => `(?:\\u00${(0x41 + i).toString(16)}-\\d+)?`).join('')})`,
    refused: false,
  },
  { what: 'parts of one constraint that are alike', path: (n) => `/:x(${'(?:-[a-z]+)?'.repeat(n)})`, refused: true },
  { what: 'parts of one constraint inside each other', path: (n) => `/:x(${'(?:-\\d'.repeat(n)}${')?'.repeat(n)})`, refused: false },
];

describe('T-02: optional parts (CVE-2026-4926)', () => {
  // Four times as many parts would take 2^15 times as long if each combination were written out.
  test.for(OPTIONAL)('twenty $what are refused or registered as one pattern, never as their combinations', async ({ path, refused }) => {
    expect(isRefused(path(20))).toBe(refused);
    await assertGrowth(path(1), (n) => timed(() => isRefused(path(n))), 5, 500);
    if (refused) return;
    const router = new Router<string>();
    const [ten, twenty] = [router.add('GET', path(10), 'x'), router.add('GET', path(20), 'x')];
    expect(router.routes).toHaveLength(2);
    expect(twenty.pattern.length).toBeLessThan(2.5 * ten.pattern.length);
  });
});

/** Expressions of published reports, of answers that are copied everywhere, and of everyday use. */
const CONSTRAINTS: readonly (readonly [source: string, outcome: 'refused' | 'linear'])[] = [
  ['(([a-zA-Z0-9])+)+', 'refused'],
  ['^(([a-z])+.)+[A-Z]([a-z])+$', 'refused'],
  ['([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))', 'refused'],
  ['(.+)+@(.+)+', 'refused'],
  ['[^@]+@[^@]+\\.[^@]+', 'refused'],
  ['(?:[a-z]+-?)*', 'refused'],
  ['(?:\\s*,\\s*)+', 'refused'],
  ['(\\d+\\.?)+', 'refused'],
  ['(?:ab|a|b)+', 'refused'],
  ['(.*)-(.*)', 'refused'],
  ['[^@]+@[^@.]+(?:\\.[^@.]+)+', 'linear'],
  ['\\s*\\w+\\s*', 'linear'],
  ['-?\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?', 'linear'],
  ['(?=.*[0-9])(?=.*[a-z])[0-9a-z]+', 'linear'],
  ['(?:[A-Za-z0-9+]{4})*(?:[A-Za-z0-9+]{2}==|[A-Za-z0-9+]{3}=)?', 'linear'],
  ['(?:0|[1-9]\\d*)\\.(?:0|[1-9]\\d*)\\.(?:0|[1-9]\\d*)(?:-[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?', 'linear'],
  ['(?:(?:[a-z0-9]|[a-z0-9][a-z0-9-]*[a-z0-9])\\.)*(?:[a-z0-9]|[a-z0-9][a-z0-9-]*[a-z0-9])', 'linear'],
];

describe('T-03: constraints that backtrack', () => {
  test.for(CONSTRAINTS)('%s is %s', async ([source, outcome]) => {
    const path: string = `/:x(${source})`;
    if (outcome === 'linear') return assertMatchesLinearly(path);
    const app = createApp();
    expect(() => app.get(path, () => 'x')).toThrow(/^constraint ".*" can read the same text in too many ways/);
    expect((await app.request('/aaaa')).status).toBe(404);
  });
});

/** What ran for a request: each handler by name, and whether both guards had seen the request before. */
interface Run {
  readonly handler: string;
  readonly guarded: boolean;
}

const KEY = 'x-key: let me in\r\n';

/** `/admin` behind the middleware of its group, and behind one of the application that looks at the path. */
function createGuarded(runs: Run[], around: boolean): Postern {
  const app = createApp();
  const run = (handler: string) => (ctx: { readonly state: Record<string, unknown> }): string => {
    runs.push({ handler, guarded: ctx.state['group'] === true && ctx.state['path'] === true });
    return handler;
  };
  const groupGuard: Middleware = (ctx, next) => {
    if (ctx.headers['x-key'] === undefined) throw new Unauthorized();
    ctx.state['group'] = true;
    return next();
  };
  // Before and after the group, and the guard after the first route: the order of registration must not matter.
  if (around) app.get('/:page', publicFacing(run('page'))).get('/:page/:sub', run('sub'));
  app.group('/admin', (admin) => {
    admin.get('', run('admin'));
    admin.use(groupGuard);
    admin.get('/', run('admin')).get('/users', run('admin')).get('/users/:id', run('admin')).get('/files/*rest', run('admin'));
  });
  if (around) app.get('/', run('root')).get('/*rest', publicFacing(run('rest')));
  return app.use((ctx, next) => {
    if (ctx.path === '/admin' || ctx.path.startsWith('/admin/')) ctx.state['path'] = true;
    return next();
  });
}

/** A target, and what answers it: the private handler, another route if there is one, or nobody. */
const SPELLINGS: readonly (readonly [target: string, answer: 'admin' | 'other' | 400])[] = [
  ['/admin', 'admin'], ['/admin/', 'admin'], ['/admin?', 'admin'], ['/admin?/../fast', 'admin'], ['/admin/users/7', 'admin'],
  ['/%61dmin', 'admin'], ['/admi%6E', 'admin'], ['/admi%6e', 'admin'], ['/%61%64%6d%69%6E', 'admin'], ['/%61dmin/', 'admin'],
  ['/%61dmin/users/%37', 'admin'], ['/admin/%75sers', 'admin'],
  ['/admin/users/%2e%2e', 'admin'], ['/admin/users/..%2f..%2ffast', 'admin'], ['/admin/files/../../fast', 'admin'], ['/admin/files//', 'admin'],
  ['/admin/users/..', 'admin'],
  ['http://x/admin', 'admin'], ['HTTP://x/%61dmin', 'admin'], ['http://x/admin?next=http://x/fast', 'admin'],
  ['//admin', 'other'], ['///admin', 'other'], ['/admin//', 'other'], ['//x/admin', 'other'], ['/admin//users', 'other'], ['http://x//admin', 'other'],
  ['/./admin', 'other'], ['/x/../admin', 'other'], ['/admin/.', 'other'], ['/admin/..', 'other'], ['/%2e/admin', 'other'], ['/x/%2e%2e/admin', 'other'],
  ['/..;/admin', 'other'], ['/x/..;/admin', 'other'],
  ['/admin%2f', 'other'], ['/admin%2F', 'other'], ['/%2fadmin', 'other'], ['/x%2f..%2fadmin', 'other'], ['/admin%2fusers', 'other'],
  ['/admin%5c', 'other'], ['/%5cadmin', 'other'], ['/x/..%5cadmin', 'other'],
  ['/\\admin', 'other'], ['/admin\\', 'other'], ['/x\\..\\admin', 'other'], ['/ADMIN', 'other'], ['/Admin/users', 'other'],
  ['/admin;x', 'other'], ['/admin;', 'other'], ['/admin%3bx', 'other'], ['/admin.', 'other'], ['/admin.json', 'other'], ['/admin%20', 'other'],
  ['/admin+', 'other'], ['/admin%09', 'other'],
  ['/admin%00', 'other'], ['/admin%00.png', 'other'], ['/admin%0a', 'other'], ['/admin%3f', 'other'], ['/admin%23', 'other'], ['/%2561dmin', 'other'],
  ['/admin%252f', 'other'], ['/%EF%BD%81dmin', 'other'],
  ['http://x?/admin', 'other'], ['http://x/?/admin', 'other'],
  ['/admin%', 400], ['/admin%zz', 400], ['/%u0061dmin', 400], ['/%c0%a1dmin', 400], ['/admin%ff', 400], ['/admin#', 400], ['/x#/admin', 400],
  ['\\admin', 400], ['admin', 400], ['http:admin', 400], ['http:/admin', 400], ['http:///admin', 400],
];

const guards = [
  { where: 'an application of private routes alone', around: false },
  { where: 'an application with routes around them', around: true },
];

describe.for(guards)('T-04: spellings of a private path in $where (GHSA-g6q3-96cp-5r5m, CVE-2026-29087, CVE-2026-39406, CVE-2026-47676)', ({ around }) => {
  test.for(SPELLINGS)('%s is answered by %s, and no private handler runs without its guards', async ([target, answer]) => {
    const runs: Run[] = [];
    const { port } = await serve(createGuarded(runs, around));
    for (const method of ['GET', 'HEAD']) {
      const send = (key: string): Promise<{ status: number }> => {
        return rawRequest(port, `${method} ${target} HTTP/1.1\r\nHost: x\r\n${key}Connection: close\r\n\r\n`);
      };
      const [closed, open] = [await send(''), await send(KEY)];
      const [withoutKey, withKey] = answer === 'admin' ? [401, 200] : answer === 'other' ? Array.from([1, 2], () => (around ? 200 : 404)) : [400, 400];
      expect([closed.status, open.status], method).toEqual([withoutKey, withKey]);
    }
    const names = runs.map(({ handler }) => handler);
    if (answer === 'admin') expect(runs).toEqual([{ handler: 'admin', guarded: true }, { handler: 'admin', guarded: true }]);
    else expect(names).not.toContain('admin');
    expect(names).toHaveLength(answer === 'admin' ? 2 : answer === 'other' && around ? 4 : 0);
  });
});

test('T-04: a path without its slash is not glued to the prefix of its group', () => {
  createApp().group('/admin', (admin) => {
    expect(() => admin.get('users', () => 'x')).toThrow('path "users" does not start with "/"; add it');
    expect(() => admin.group('users', (users) => users.get('/:id', () => 'x'))).toThrow('path "users" does not start with "/"; add it');
  });
});

/** Targets with what a handler sees of them, and refused ones that wire/targets leaves out; `null` for a query without `next`. */
const TARGETS: readonly (readonly [target: string, status: number, answer?: string])[] = [
  ['http://x?next=/admin', 200, '/ next=/admin'],
  ['http://x?/admin', 200, '/ next=null'],
  ['http://x:80?next=http://y/admin', 200, '/ next=http://y/admin'],
  ['HTTP://x', 200, '/ next=null'],
  ['hTTpS://x/', 200, '/ next=null'],
  ['http://x/?/admin', 200, '/ next=null'],
  ['http://x%2Fadmin', 200, '/ next=null'],
  ['http://x;a=/admin', 200, '/admin next=null'],
  ['http://[::1]:80/admin?next=/', 200, '/admin next=/'],
  ['http://y/admin', 200, '/admin next=null'],
  ['http://x//x', 404],
  ['http://x//admin', 404],
  ['/*', 404],
  ['http://', 400],
  ['http://?next=/admin', 400],
  ['http:\\\\x\\admin', 400],
  ['http://x\\@y/admin', 400],
  ['http://x:80:81/admin', 400],
  ['http://x:admin', 400],
  ['javascript://x/admin', 400],
  ['x', 400],
  ['*?next=/admin', 400],
  ['**', 400],
];

test.for(TARGETS)('T-05: the target %s gives %i', async ([target, status, answer]) => {
  const app = createApp();
  for (const path of ['/', '/admin'] as const) app.get(path, (ctx) => `${ctx.path} next=${ctx.query.get('next')}`);
  const { port } = await serve(app);
  const response = await rawRequest(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(response.status).toBe(status);
  if (answer !== undefined) expect(response.body).toBe(answer);
});

test.for(['http://x', '*?a', '**', '/*'])('T-05: OPTIONS with the target %s is not OPTIONS *', async (target) => {
  const { port } = await serve(createApp().post('/', () => 'x'));
  const response = await rawRequest(port, `OPTIONS ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  if (target === 'http://x') expect([response.status, response.headers['allow']]).toEqual([204, 'OPTIONS, POST']);
  else expect(response.status).toBe(target === '/*' ? 404 : 400);
});
