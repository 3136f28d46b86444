/**
 * `postern alerts`: rules that Prometheus takes, and that fire when they should.
 *
 * @module-tag package
 * @module-tag prometheus
 */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Postern } from 'postern';
import { parse, stringify } from 'yaml';
import { createProject, runCommand } from '../support/command.js';

/** A folder with the rules of an application in `rules.yml`. */
async function writeRules(name: string): Promise<string> {
  const cwd = createProject({
    'app.mjs': `import { Postern } from 'postern';\nexport default new Postern('${name}');\n`,
  });
  const { code, stdout, stderr } = await runCommand(['alerts', 'app.mjs'], { cwd });
  expect([code, stderr]).toEqual([0, '']);
  writeFileSync(join(cwd, 'rules.yml'), stdout);
  return cwd;
}

const promtool = (cwd: string, ...args: string[]): string =>
  execFileSync('promtool', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

test.for(['users', 'no', 'A.b~c_d-1'])('promtool takes the rules of %s', async (name) => {
  const cwd = await writeRules(name);
  expect(promtool(cwd, 'check', 'rules', 'rules.yml')).toContain('SUCCESS: 7 rules found');
});

test('every metric that a rule reads is one that an application has', async () => {
  const rules = readFileSync(join(await writeRules('users'), 'rules.yml'), 'utf8');
  const read = new Set(
    [...rules.matchAll(/\b(\w+)\{job=/g)].map(([, metric = '']) => metric.replace(/_(?:count|bucket)$/, '')),
  );
  read.delete('up');
  expect(read.size).toBe(5);
  const app = new Postern('users', { logger: false });
  const exposed = app.metrics.expose();
  await app.close();
  for (const metric of read) expect(exposed).toContain(`# TYPE ${metric} `);
});

/** `30 minutes, a sample each`, in the notation of promtool. */
const HOUR = 60;
const route = (labels: string): string => `http_request_duration_seconds_count{job="users",method="GET",${labels}}`;
const bucket = (labels: string, le: string): string =>
  `http_request_duration_seconds_bucket{job="users",method="GET",status_code="200",${labels},le="${le}"}`;
const call = (status: string): string =>
  `service_request_duration_seconds_count{job="users",service="billing",method="GET",status_code="${status}"}`;
const info = (status: string): string =>
  `service_info{job="users",instance="10.0.0.7:8000",service="users",status="${status}"}`;
const rate = (perMinute: number): string => `0+${perMinute}x${HOUR}`;
const always = (value: number): string => `${value}x${HOUR}`;

const healthy: Record<string, string> = {
  'up{job="users",instance="10.0.0.7:8000"}': always(1),
  [route('route="/users/:id",status_code="200"')]: rate(600),
  [route('route="/users/:id",status_code="404"')]: rate(600),
  [route('route="/users/:id",status_code="503"')]: rate(6),
  // A probe that fails is told by its own rule.
  [route('route="/users/health/",status_code="503"')]: rate(6000),
  [bucket('route="/users/:id"', '0.1')]: rate(590),
  [bucket('route="/users/:id"', '1.0')]: rate(599),
  [bucket('route="/users/:id"', '10.0')]: rate(600),
  [bucket('route="/users/:id"', '+Inf')]: rate(600),
  [bucket('route="/users/metrics/"', '1.0')]: rate(0),
  [bucket('route="/users/metrics/"', '10.0')]: rate(4),
  [bucket('route="/users/metrics/"', '+Inf')]: rate(4),
  'nodejs_eventloop_lag_p99_seconds{job="users",instance="10.0.0.7:8000"}': always(0.02),
  'proc_rss_mem_perc{job="users",instance="10.0.0.7:8000"}': always(70),
  [info('OK')]: always(1),
  [call('200')]: rate(100),
  [call('404')]: rate(50),
  [call('0')]: rate(1),
};

const faults: { alert: string; series: Record<string, string>; labels: Record<string, string> }[] = [
  { alert: 'HighErrorRatio', series: { [route('route="/users/:id",status_code="503"')]: rate(120) },
    labels: { job: 'users' } },
  { alert: 'SlowRoute',
    series: { [bucket('route="/users/:id"', '0.1')]: rate(10), [bucket('route="/users/:id"', '1.0')]: rate(580) },
    labels: { job: 'users', method: 'GET', route: '/users/:id' } },
  { alert: 'EventLoopLag',
    series: { 'nodejs_eventloop_lag_p99_seconds{job="users",instance="10.0.0.7:8000"}': always(0.3) },
    labels: { job: 'users', instance: '10.0.0.7:8000' } },
  { alert: 'MemoryNearLimit', series: { 'proc_rss_mem_perc{job="users",instance="10.0.0.7:8000"}': always(95) },
    labels: { job: 'users', instance: '10.0.0.7:8000' } },
  { alert: 'HealthFailing', series: { [info('OK')]: '1x10 _x50', [info('FAIL')]: '_x10 1x50' },
    labels: { job: 'users', instance: '10.0.0.7:8000', service: 'users', status: 'FAIL' } },
  { alert: 'InstanceDown', series: { 'up{job="users",instance="10.0.0.7:8000"}': always(0) },
    labels: { job: 'users', instance: '10.0.0.7:8000' } },
  { alert: 'DependencyFailing', series: { [call('0')]: rate(20), [call('503')]: rate(20) },
    labels: { job: 'users', service: 'billing' } },
];
const other = Object.fromEntries(
  faults
    .flatMap(({ series }) => Object.entries(series))
    .map(([name, values]) => [name.replaceAll('job="users"', 'job="other"'), values]),
);

interface Rule {
  readonly alert: string;
  readonly labels: Record<string, string>;
}

/** What promtool is to find: alerts that fire after half an hour with their labels, those of others that don't. */
function scenario(
  rules: readonly Rule[],
  name: string,
  series: Record<string, string>,
  fires?: (typeof faults)[number],
): object {
  return {
    name,
    interval: '1m',
    input_series: Object.entries({ ...healthy, ...series }).map(([key, values]) => ({ series: key, values })),
    alert_rule_test: rules.map(({ alert, labels }) => ({
      alertname: alert,
      eval_time: '30m',
      exp_alerts: alert === fires?.alert ? [{ exp_labels: { ...labels, ...fires.labels } }] : [],
    })),
  };
}

test('each rule fires on its own fault and on no other, none on a healthy service, and none for another job', async () => {
  const cwd = await writeRules('users');
  const [group] = (parse(readFileSync(join(cwd, 'rules.yml'), 'utf8')) as { groups: { rules: Rule[] }[] }).groups;
  const rules = group?.rules ?? [];
  expect(faults.map(({ alert }) => alert).sort()).toEqual(rules.map(({ alert }) => alert).sort());
  // Annotations are compared too: they are for people, and would be written here a second time.
  writeFileSync(
    join(cwd, 'bare.yml'),
    stringify({
      groups: [
        { name: 'users', rules: rules.map(({ annotations: _, ...rule }: Rule & { annotations?: unknown }) => rule) },
      ],
    }),
  );
  const tests = [
    scenario(rules, 'healthy', {}),
    scenario(rules, 'another job', other),
    scenario(rules, 'draining', { [info('OK')]: '1x10 _x50', [info('DRAINING')]: '_x10 1x50' }),
    scenario(rules, 'a short fault', { [info('OK')]: '1x28 _x2 1x30', [info('FAIL')]: '_x29 1x1 _x30' }),
    ...faults.map((fault) => scenario(rules, fault.alert, fault.series, fault)),
  ];
  writeFileSync(join(cwd, 'tests.yml'), stringify({ rule_files: ['bare.yml'], evaluation_interval: '1m', tests }));
  expect(promtool(cwd, 'test', 'rules', 'tests.yml')).toContain('SUCCESS');
});
