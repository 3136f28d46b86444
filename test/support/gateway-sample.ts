/** A route table, and the paths to try on it through a gateway. */

import { publicFacing } from '../../src/endpoint/public-facing.js';
import { Router } from '../../src/routing/router.js';

const closed = (): string => 'private';
const open = publicFacing(() => 'public');

/** A table with a route for each text: `+GET /a` is a public one, `-GET /a` a private one. */
export function createRouter(routes: readonly string[]): Router {
  const router = new Router();
  for (const text of routes) addTo(router, text);
  return router;
}

/** Adds the route of a text: `+GET /a` is a public one, `-GET /a` a private one. */
export function addTo(router: Router, text: string): void {
  const [method = '', path = ''] = text.slice(1).split(/ (.*)/s);
  router.add(method, path, text.startsWith('+') ? open : closed);
}

/** Routes inside of each other both ways: `+GET /a` is a public one, `-GET /a` a private one. */
export const SAMPLE: readonly string[] = [
    '+GET /', '+GET /fast', '+POST /fast', '+QUERY /fast', '+PURGE /fast', '+GET /users/:id', '+DELETE /users/:id',
    '+GET /users/:id/keys/', '+GET /files/*rest',
    '+GET /n/:n(\\d+)', '+GET /n/:word([a-z ]+)', '+GET /a/:x', '+POST /users/me', '+GET /café/@me/a b',
    '+GET /only/:x(.+)', '+GET /short/:x(.{1,3})', '+GET /~tilde/it\'s;"$x{1}`%',
    '+HEAD /head', '+GET /options', '+OPTIONS /own', '+GET /half/:x([à-ü]+)', '+GET /v1.0/(x)', '+PUT /both/:x(a|b)',
    '+GET /not/:x([^/x]+)',
    '-PUT /fast', '-GET /admin', '-GET /admin/', '-GET /users/me', '-GET /users/me/keys/', '-GET /files/secret/*rest',
    '-GET /files/top', '-GET /n/:n(0\\d*)', '-GET /:y/b', '-GET /:any/:thing/deep',
    '-GET /head', '-OPTIONS /options', '-GET /own', '-GET /café/@me', '-GET /users/:id(x{2,4})', '-PATCH /both/:x(b|c)',
    '-GET /users/admin@home', '-GET /users/:id(mid dle)', '-GET /sta/:x/tic',
  ];

/** A table of {@link SAMPLE}; `left` are the routes to leave out. */
export function createSampleRouter(left: readonly string[] = []): Router {
  return createRouter(SAMPLE.filter((route) => !left.includes(route.slice(1))));
}

/** Paths as a client writes them every day: through `encodeURIComponent`, or leaving what a path may have. */
export const EVERYDAY: readonly string[] = [
  '/', '/fast', '/FAST', '/fast/', '/admin', '/admin/', '/users', '/users/', '/users/7', '/users/me', '/users/me/',
  '/users/ME', '/users/me2', '/users/7/keys/', '/users/me/keys/', '/users/7/keys',
  '/users/J%C3%BCrgen', '/users/a%20b', '/users/a%40b.example', '/users/a@b.example', '/users/admin@home',
  '/users/admin%40home', '/users/mid%20dle', '/users/%F0%9F%98%80', '/users/x', '/users/xx', '/users/xxxx',
  '/users/xxxxx',
  '/users/a;b=1', '/users/a+b', '/users/50%25', '/users/%E2%82%AC', '/users/-_.~!$&\'()*,=:', '/users/b', '/files/a',
  '/files/a/b.txt', '/files/a/', '/files/secret', '/files/secret/', '/files/secret/x', '/files/secret/x/y',
  '/files/secrets/x', '/files/top', '/files/top/', '/n/7', '/n/007', '/n/0', '/n/a%20b', '/n/abc', '/n/A', '/a/b',
  '/a/c', '/z/b', '/a/b/deep', '/caf%C3%A9/@me/a%20b', '/caf%c3%a9/%40me/a%20b', '/caf%C3%A9/@me', '/cafe/@me/a%20b',
  '/only/x', '/only/%C3%A9', '/short/abc', '/short/abcd', '/short/%C3%A9%C3%A9%C3%A9',
  `/~tilde/it's%3B%22%24x%7B1%7D%60%25`, `/~tilde/it's;%22$x%7B1%7D%60%25`, '/%7Etilde/x', '/head', '/options', '/own',
  '/half/%C3%A9', '/half/e', '/half/%C3%9F',
  '/v1.0/(x)', '/v1a0/(x)', '/both/a', '/both/b', '/both/c', '/not/y', '/not/x', '/not/%C3%A9y', '/nothing',
  '/sta/x/tic', '/sta/a%26b/tic', `/users/${'long'.repeat(500)}`, `/n/${'a%20'.repeat(250)}`,
];

/** Spellings that may be refused, and must not reach what is private. */
export const ODD: readonly string[] = [
  '/%61dmin', '/admi%6E', '/%61%64%6d%69%6e', '//admin', '/admin//', '/./admin', '/admin/.', '/x/../admin',
  '/fast/../admin', '/users/../admin', '/users/7/../../admin', '/users/./me', '/users//me', '/users/x/../me',
  '/users/%6de', '/users/m%65',
  '/users/%6D%65', '/users/me%2f', '/users%2fme', '/users%2Fme', '/%75sers/me', '/users/me%00', '/users/me%00x',
  '/users/me%0a', '/users/me%0A', '/users/me%0d%0a', '/users/me;x', '/users/me;', '/users/;/me', '/users/me%3b',
  '/users/me%3B',
  '/users/me.', '/users/me%20', '/users/me+', '/users\\me', '/users/\\me', '\\admin', '/\\admin', '/users/%5cme',
  '/users%5Cme', '/admin%2e', '/%2e/admin', '/%2e%2e/admin', '/x/%2e%2e/admin', '/x/..%2fadmin', '/x%2f..%2fadmin',
  '/..;/admin', '/users/..;/admin',
  '/users/%25%36%64e', '/users/%256de', '/users/%2525', '/users/me%', '/users/me%2', '/users/me%zz', '/users/%u006de',
  '/users/%C0%AE', '/users/%E0%80%AF', '/users/%ED%A0%80', '/users/%F5%80%80%80', '/users/%FF', '/users/%C3',
  '/users/%A9', '/users/a%C3', '/users/%E2%82', '/users/%C3%A9%A9', '/users/%F0%9F%98', '/users/ab%A9', '/users/%41%A9',
  '/Users/me', '/users/mE', '/admin?', '/users/me?', '/users/me?x=/users/7', '/users/me?/../7', '/users/7?/../me',
  '/users/me#', '/users/me#/7', '/users/7#/../me', '/users/7?#', '/?/admin', '/fast?x', '/fast%3Fx', '/fast%3f',
  '/admin%3F', '/admin%23',
  '/files/x/../secret/y', '/files//secret/x', '/files/secret%2fx', '/files/%73ecret/x', '/files/x%2f..%2fsecret/x',
  '/files/./secret/x', '/files/secret/./x', '/files//', '/files///', '/n/%30', '/n/%37', '/n/7%0A', '/n/7%20',
  '/n/%EF%BC%97', '/a/%62', '/%61/b', '/caf\u00c3\u00a9/@me', '/users/\u00e9', '/users/\u00c3\u00a9', '/users/\u0080',
  '/short/%F0%9F%98%80', '/short/%F0%9F%98%80%F0%9F%98%80', '/users/%F0%9F%98%80x', '/users/{me}',
  '/users/{http.request.method}', '/users/$request_method', '/users/a|b', '/users/[x]', '/users/"x"', '/users/<x>',
  '/users/`x`', '/users/^', '/*', '*', 'admin', 'users/7', '?', '',
  'http://t.example/admin', 'http://t.example/users/me', 'http://t.example/users/7', 'HTTP://T.example/users/7',
  'http://t.example', 'http://t.example?/users/7', 'http://t.example/?x', 'http://t.example//admin',
  'http://t.example/users/%6de', 'http://t@x/users/me', 'https://t.example/users/7', '//t/users/7', '/http://t/users/7',
  'http:/users/7', 't:80',
];
