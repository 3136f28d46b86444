/**
 * The scenarios that compare servers under load.
 */

import { CHECKING, FRAMEWORKS, LEADERS, OBSERVED, SMALL_HEAP } from '../harness/contender.mjs';
import { CHECKED, ECHO, FAIL, HELLO, LIST, mixed, parameterised, unknown } from './requests.mjs';

/**
 * @typedef {object} HttpScenario
 * @property {string} title
 * @property {import('../servers/service.mjs').Spec} spec
 * @property {readonly import('../harness/contender.mjs').Contender[]} contenders
 * @property {readonly string[]} [flags] of Node.js
 * @property {(random: () => number) => readonly import('./requests.mjs').Request[]} requests
 */

/** An application of 200 routes, those of hello, echo and fail apart. */
const MANY = { resources: 40 };
const SMALL = { resources: 0 };

/**
 * By name.
 *
 * @type {Map<string, HttpScenario>}
 */
export const HTTP_SCENARIOS = new Map([
  ['hello', { title: 'hello', spec: SMALL, contenders: FRAMEWORKS, requests: () => [HELLO] }],
  [
    'params',
    {
      title: 'parameters, 200 routes',
      spec: MANY,
      contenders: FRAMEWORKS,
      requests: (random) => parameterised(MANY.resources, random),
    },
  ],
  ['echo', { title: 'echo of 1 kB of JSON', spec: SMALL, contenders: FRAMEWORKS, requests: () => [ECHO] }],
  [
    'checked',
    {
      title: '1 kB of JSON held to a schema',
      spec: { ...SMALL, isChecked: true },
      contenders: CHECKING,
      requests: () => [CHECKED],
    },
  ],
  [
    'lists',
    {
      title: 'lists of 12 kB, in a container as small as can be',
      spec: SMALL,
      contenders: SMALL_HEAP,
      flags: ['--max-semi-space-size=1', '--max-old-space-size=16'],
      requests: () => [LIST],
    },
  ],
  ['error', { title: 'thrown error', spec: SMALL, contenders: FRAMEWORKS, requests: () => [FAIL] }],
  ['404', { title: '404, 200 routes', spec: MANY, contenders: FRAMEWORKS, requests: unknown }],
  ['observed', { title: 'hello with observability on', spec: SMALL, contenders: OBSERVED, requests: () => [HELLO] }],
  [
    '10k',
    {
      title: 'parameters, 10,000 routes',
      spec: { resources: 2000 },
      contenders: LEADERS,
      requests: (random) => parameterised(2000, random),
    },
  ],
  [
    'mixed',
    {
      title: 'mixed, 200 routes',
      spec: MANY,
      contenders: LEADERS,
      requests: (random) => mixed(MANY.resources, random),
    },
  ],
]);
