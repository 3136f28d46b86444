/** Advisories about private paths that are reached by another spelling. */

import { describe, expect, test } from 'vitest';
import { publicFacing, Unauthorized, type Middleware, type Postern } from 'postern';
import { rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

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
    admin
      .get('/', run('admin'))
      .get('/users', run('admin'))
      .get('/users/:id', run('admin'))
      .get('/files/*rest', run('admin'));
  });
  if (around) app.get('/', run('root')).get('/*rest', publicFacing(run('rest')));
  return app.use((ctx, next) => {
    if (ctx.path === '/admin' || ctx.path.startsWith('/admin/')) ctx.state['path'] = true;
    return next();
  });
}

/** A target, and what answers it: the private handler, another route if there is one, or nobody. */
const SPELLINGS: readonly (readonly [target: string, answer: 'admin' | 'other' | 400])[] = [
  ['/admin', 'admin'], ['/admin/', 'admin'], ['/admin?', 'admin'], ['/admin?/../fast', 'admin'],
  ['/admin/users/7', 'admin'],
  ['/%61dmin', 'admin'], ['/admi%6E', 'admin'], ['/admi%6e', 'admin'], ['/%61%64%6d%69%6E', 'admin'],
  ['/%61dmin/', 'admin'],
  ['/%61dmin/users/%37', 'admin'], ['/admin/%75sers', 'admin'],
  ['/admin/users/%2e%2e', 400], ['/admin/users/..%2f..%2ffast', 'admin'], ['/admin/files/../../fast', 400],
  ['/admin/files//', 'admin'],
  ['/admin/users/..', 400],
  ['http://x/admin', 'admin'], ['HTTP://x/%61dmin', 'admin'], ['http://x/admin?next=http://x/fast', 'admin'],
  ['//admin', 'other'], ['///admin', 'other'], ['/admin//', 'other'], ['//x/admin', 'other'],
  ['/admin//users', 'other'], ['http://x//admin', 'other'],
  ['/./admin', 400], ['/x/../admin', 400], ['/admin/.', 400], ['/admin/..', 400],
  ['/%2e/admin', 400], ['/x/%2e%2e/admin', 400],
  ['/..;/admin', 'other'], ['/x/..;/admin', 'other'],
  ['/admin%2f', 'other'], ['/admin%2F', 'other'], ['/%2fadmin', 'other'], ['/x%2f..%2fadmin', 'other'],
  ['/admin%2fusers', 'other'],
  ['/admin%5c', 'other'], ['/%5cadmin', 'other'], ['/x/..%5cadmin', 'other'],
  ['/\\admin', 400], ['/admin\\', 400], ['/x\\..\\admin', 400], ['/ADMIN', 'other'],
  ['/Admin/users', 'other'],
  ['/admin;x', 'other'], ['/admin;', 'other'], ['/admin%3bx', 'other'], ['/admin.', 'other'], ['/admin.json', 'other'],
  ['/admin%20', 'other'],
  ['/admin+', 'other'], ['/admin%09', 'other'],
  ['/admin%00', 'other'], ['/admin%00.png', 'other'], ['/admin%0a', 'other'], ['/admin%3f', 'other'],
  ['/admin%23', 'other'], ['/%2561dmin', 'other'],
  ['/admin%252f', 'other'], ['/%EF%BD%81dmin', 'other'],
  ['http://x?/admin', 'other'], ['http://x/?/admin', 'other'],
  ['/admin%', 400], ['/admin%zz', 400], ['/%u0061dmin', 400], ['/%c0%a1dmin', 400], ['/admin%ff', 400],
  ['/admin#', 400], ['/x#/admin', 400],
  ['\\admin', 400], ['admin', 400], ['http:admin', 400], ['http:/admin', 400], ['http:///admin', 400],
];

const guards = [
  { where: 'an application of private routes alone', around: false },
  { where: 'an application with routes around them', around: true },
];

describe.for(guards)(
  'spellings of a private path in $where (GHSA-g6q3-96cp-5r5m, CVE-2026-29087, CVE-2026-39406, CVE-2026-47676)',
  ({ around }) => {
    test.for(SPELLINGS)(
      '%s is answered by %s, and no private handler runs without its guards',
      async ([target, answer]) => {
        const runs: Run[] = [];
        const { port } = await serve(createGuarded(runs, around));
        for (const method of ['GET', 'HEAD']) {
          const send = (key: string): Promise<{ status: number }> => {
            return rawRequest(port, `${method} ${target} HTTP/1.1\r\nHost: x\r\n${key}Connection: close\r\n\r\n`);
          };
          const [closed, open] = [await send(''), await send(KEY)];
          const [withoutKey, withKey] =
            answer === 'admin'
              ? [401, 200]
              : answer === 'other'
                ? Array.from([1, 2], () => (around ? 200 : 404))
                : [400, 400];
          expect([closed.status, open.status], method).toEqual([withoutKey, withKey]);
        }
        const names = runs.map(({ handler }) => handler);
        if (answer === 'admin')
          expect(runs).toEqual([
            { handler: 'admin', guarded: true },
            { handler: 'admin', guarded: true },
          ]);
        else expect(names).not.toContain('admin');
        expect(names).toHaveLength(answer === 'admin' ? 2 : answer === 'other' && around ? 4 : 0);
      },
    );
  },
);

test('a path without its slash is not glued to the prefix of its group (GHSA-g6q3-96cp-5r5m)', () => {
  createApp().group('/admin', (admin) => {
    expect(() => admin.get('users', () => 'x')).toThrow('path "users" does not start with "/"; add it');
    expect(() => admin.group('users', (users) => users.get('/:id', () => 'x')))
      .toThrow('path "users" does not start with "/"; add it');
  });
});
