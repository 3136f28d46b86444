/**
 * Deliberate faults in the exporters, to measure the tests of gateways: `npm run gateways:mutants`. An exporter that
 * sets no scope, or whose patterns are too narrow, must make a test fail.
 */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { measureMutants, type Mutant } from '../support/mutants.js';

interface GatewayMutant extends Mutant {
  /** Below `test/gateway/`. */
  readonly test: string;
}

const PUBLIC = "'one service' nginx, haproxy, caddy let through what is public, and nothing else";
const [ROUTES, KONG, GATEWAY_API] = ['routes.test.ts', 'kong.test.ts', 'gateway-api.test.ts'];
const SCOPE_IN_KONG =
  'one service: every route sets the scope, removes what a client may not set, and keeps path and host';
const SCOPE_IN_RULES = 'HTTPRoute manifests set the scope in every rule, and remove what a client may not set';
const [NO_ROUTE, NO_RULE] = [
  'Kong with pcre forwards every request that a public handler answers',
  'HTTPRoute manifests forward every request that a public handler answers',
];
const [SEGMENT, NARROW] = ["'/[^/]+'", "'/[a-z]+'"];
const narrowed = (call: string): string => `${call}.replace('[^/]+', '[a-z]+')`;
const EITHER = 'formatEither(segments, prefix);';
const IN_HAPROXY = 'formatRegex(route.segments, { prefix, end: PATH_END })';
const IN_KONG = "formatRegex(segments, { escapable: RESERVED, rest: '[\\\\s\\\\S]+$' })";
const IN_GATEWAY_API = "formatRegex(segments, { prefix, escapable: ESCAPABLE, rest: '.+$' })";

const MUTANTS: readonly GatewayMutant[] = [
  { name: 'nginx sets no scope', file: 'gateway/nginx.ts', find: 'proxy_set_header X-Postern-Scope public;',
    replace: '', test: ROUTES, caughtBy: PUBLIC },
  { name: 'HAProxy sets no scope', file: 'gateway/haproxy.ts', find: 'http-request set-header X-Postern-Scope public',
    replace: '', test: ROUTES, caughtBy: PUBLIC },
  { name: 'Caddy sets no scope', file: 'gateway/caddy.ts', find: 'header_up X-Postern-Scope public', replace: '',
    test: ROUTES, caughtBy: PUBLIC },
  { name: 'Kong sets no scope', file: 'gateway/kong.ts', find: "headers: ['X-Postern-Scope:public']",
    replace: 'headers: []', test: KONG, caughtBy: SCOPE_IN_KONG },
  { name: 'an HTTPRoute sets no scope', file: 'gateway/gateway-api.ts', find: '- name: X-Postern-Scope',
    replace: '- name: X-Other', test: GATEWAY_API, caughtBy: SCOPE_IN_RULES },
  { name: 'a pattern of nginx is too narrow', file: 'gateway/nginx.ts', find: EITHER,
    replace: `${narrowed(EITHER.slice(0, -1))};`, test: ROUTES, caughtBy: PUBLIC },
  { name: 'a pattern of HAProxy is too narrow', file: 'gateway/haproxy.ts', find: IN_HAPROXY,
    replace: narrowed(IN_HAPROXY), test: ROUTES, caughtBy: PUBLIC },
  { name: 'a pattern of Caddy is too narrow', file: 'gateway/caddy.ts', find: EITHER,
    replace: `${narrowed(EITHER.slice(0, -1))};`, test: ROUTES, caughtBy: PUBLIC },
  { name: 'a pattern of Kong is too narrow', file: 'gateway/kong.ts', find: IN_KONG, replace: narrowed(IN_KONG),
    test: KONG, caughtBy: NO_ROUTE },
  { name: 'a pattern of an HTTPRoute is too narrow', file: 'gateway/gateway-api.ts', find: IN_GATEWAY_API,
    replace: narrowed(IN_GATEWAY_API), test: GATEWAY_API, caughtBy: NO_RULE },
  { name: 'a parameter of every gateway is too narrow', file: 'gateway/path-pattern.ts', find: SEGMENT, replace: NARROW,
    test: GATEWAY_API, caughtBy: NO_RULE },
];

const missed = measureMutants(MUTANTS, process.argv[3], ({ test, caughtBy }, root) => {
  const args = [
    'run', '--root', root, '--maxWorkers=1', '--reporter=json', '--testNamePattern', caughtBy,
    join('test/gateway', test),
  ];
  const { stdout } = spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: root,
    encoding: 'utf8',
  });
  const { testResults } = JSON.parse(stdout) as {
    testResults: { assertionResults: { status: string; fullName: string; failureMessages: string[] }[] }[];
  };
  const failed = testResults.flatMap(({ assertionResults }) => assertionResults)
    .filter(({ failureMessages }) => failureMessages.some((text) => text.startsWith('AssertionError')));
  return failed.map(({ fullName }) => fullName);
});
process.exit(missed === 0 ? 0 : 1);
