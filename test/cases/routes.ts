/** Routes and what they match: shared by the tests of the router and of its patterns. */

/** One path as registered, its pattern, and paths with the parameters that they give, or null. */
export interface RouteCase {
  readonly path: string;
  readonly pattern: string;
  readonly matches: Readonly<Record<string, Readonly<Record<string, string>> | null>>;
}

export const routeCases: readonly RouteCase[] = [
  { path: '/', pattern: '^/$', matches: { '/': {}, '': null, '//': null, '/a': null } },
  { path: '/a', pattern: '^/a$', matches: { '/a': {}, '/a/': null, '/A': null, '/%61': {}, 'a': null, '/a%2F': null } },
  { path: '/a/', pattern: '^/a/$', matches: { '/a/': {}, '/a': null, '/a//': null } },
  {
    path: '/users/:id',
    pattern: '^/users/([^/]+)$',
    matches: {
      '/users/7': { id: '7' },
      '/users/': null,
      '/users/7/': null,
      '/users/a%2Fb': { id: 'a/b' },
      '/users/%20': { id: ' ' },
      '/users/J%C3%BC': { id: 'Jü' },
      'xusers/7': null,
    },
  },
  { path: '/n/:n(\\d+)', pattern: '^/n/(\\d+)$',
    matches: { '/n/5': { n: '5' }, '/n/%35': { n: '5' }, '/n/5a': null, '/n/5%0A': null, '/n/': null } },
  {
    path: '/f/*rest',
    pattern: '^/f/(.+)$',
    matches: {
      '/f/a': { rest: 'a' },
      '/f/a/b/': { rest: 'a/b/' },
      '/f/': null,
      '/f': null,
      '/f//': { rest: '/' },
      '/f/a%2Fb%20c': { rest: 'a/b c' },
      '/f/a%0Ab': { rest: 'a\nb' },
    },
  },
  { path: '/*', pattern: '^/(.+)$', matches: { '/x/y': { '*': 'x/y' }, '/': null } },
  { path: '/v1.0/(x)+{y}$', pattern: '^/v1\\.0/\\(x\\)\\+\\{y\\}\\$$',
    matches: { '/v1.0/(x)+{y}$': {}, '/v1x0/(x)+{y}$': null } },
  { path: '/a:b/c*d', pattern: '^/a:b/c\\*d$', matches: { '/a:b/c*d': {}, '/a%3Ab/c%2Ad': {}, '/axb/cccd': null } },
  { path: '/café/:x', pattern: '^/café/([^/]+)$', matches: { '/caf%C3%A9/1': { x: '1' }, '/cafe/1': null } },
  { path: '/d/:day(\\d{4}-\\d{2})/:rest(a|b)', pattern: '^/d/(\\d{4}-\\d{2})/(a|b)$',
    matches: { '/d/2026-11/a': { day: '2026-11', rest: 'a' }, '/d/2026-11/ab': null, '/d/2026-1/a': null } },
  { path: '/q/:x([^/)]+\\))', pattern: '^/q/([^/)]+\\))$', matches: { '/q/a)': { x: 'a)' }, '/q/a': null } },
];
