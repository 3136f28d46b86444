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
async function writeRules(name: string, options: object = {}): Promise<string> {
  const app = `new Postern('${name}', ${JSON.stringify(options)})`;
  const cwd = createProject({ 'app.mjs': `import { Postern } from 'postern';\nexport default ${app};\n` });
  const { code, stdout, stderr } = await runCommand(['alerts', 'app.mjs'], { cwd });
  expect([code, stderr]).toEqual([0, '']);
  writeFileSync(join(cwd, 'rules.yml'), stdout);
  return cwd;
}

const promtool = (cwd: string, ...args: string[]): string =>
  execFileSync('promtool', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

test.for(['users', 'no', 'A.b~c_d-1'])('promtool takes the rules of %s', async (name) => {
  const cwd = await writeRules(name);
  expect(promtool(cwd, 'check', 'rules', 'rules.yml')).toContain('SUCCESS: 8 rules found');
});

test('every metric that a rule reads is one that an application has', async () => {
  const rules = readFileSync(join(await writeRules('users'), 'rules.yml'), 'utf8');
  const read = new Set(
    [...rules.matchAll(/\b(\w+)\{job=/g)].map(([, metric = '']) => metric.replace(/_(?:count|bucket)$/, '')),
  );
  read.delete('up');
  expect(read.size).toBe(6);
  const app = new Postern('users', { logger: false });
  const exposed = app.metrics.expose();
  await app.close();
  for (const metric of read) expect(exposed).toContain(`# TYPE ${metric} `);
});

/** `30 minutes, a sample each`, in the notation of promtool. */
const HOUR = 60;
const PROD = 'namespace="prod",job="users"';
const INSTANCE = `${PROD},instance="10.0.0.7:8000"`;
const route = (labels: string): string =>
  `http_request_duration_seconds_count{${PROD},method="GET",${labels}}`;
const bucket = (labels: string, le: string): string =>
  `http_request_duration_seconds_bucket{${PROD},method="GET",status_code="200",${labels},le="${le}"}`;
const call = (status: string): string =>
  `service_request_duration_seconds_count{${PROD},service="billing",method="GET",status_code="${status}"}`;
const refused = (reason: string): string =>
  `http_requests_refused_total{${PROD},route="/users/:id",reason="${reason}"}`;
const info = (status: string): string =>
  `service_info{${INSTANCE},service="users",status="${status}"}`;
const rate = (perMinute: number): string => `0+${perMinute}x${HOUR}`;
const always = (value: number): string => `${value}x${HOUR}`;

const inStaging = (series: string): string => series.replace('namespace="prod"', 'namespace="staging"');

const healthy: Record<string, string> = {
  [`up{${INSTANCE}}`]: always(1),
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
  [`nodejs_eventloop_lag_p99_seconds{${INSTANCE}}`]: always(0.02),
  [`proc_rss_mem_perc{${INSTANCE}}`]: always(70),
  [info('OK')]: always(1),
  // One burst, half an hour ago at the latest.
  [refused('deadline')]: `0+3x3 9x${HOUR}`,
  [call('200')]: rate(100),
  [call('404')]: rate(50),
  [call('0')]: rate(1),
};

const faults: { alert: string; series: Record<string, string>; labels: Record<string, string> }[] = [
  { alert: 'HighErrorRatio', series: { [route('route="/users/:id",status_code="503"')]: rate(120) },
    labels: { namespace: 'prod', job: 'users' } },
  { alert: 'SlowRoute',
    series: { [bucket('route="/users/:id"', '0.1')]: rate(10), [bucket('route="/users/:id"', '1.0')]: rate(580) },
    labels: { namespace: 'prod', job: 'users', method: 'GET', route: '/users/:id' } },
  { alert: 'EventLoopLag',
    series: { [`nodejs_eventloop_lag_p99_seconds{${INSTANCE}}`]: always(0.3) },
    labels: { namespace: 'prod', job: 'users', instance: '10.0.0.7:8000' } },
  { alert: 'MemoryNearLimit', series: { [`proc_rss_mem_perc{${INSTANCE}}`]: always(95) },
    labels: { namespace: 'prod', job: 'users', instance: '10.0.0.7:8000' } },
  { alert: 'HealthFailing', series: { [info('OK')]: '1x10 _x50', [info('FAIL')]: '_x10 1x50' },
    labels: { namespace: 'prod', job: 'users', instance: '10.0.0.7:8000', service: 'users', status: 'FAIL' } },
  { alert: 'InstanceDown', series: { [`up{${INSTANCE}}`]: always(0) },
    labels: { namespace: 'prod', job: 'users', instance: '10.0.0.7:8000' } },
  { alert: 'Overloaded', series: { [refused('queue')]: rate(3) },
    labels: { namespace: 'prod', job: 'users', route: '/users/:id' } },
  { alert: 'DependencyFailing', series: { [call('0')]: rate(20), [call('503')]: rate(20) },
    labels: { namespace: 'prod', job: 'users', service: 'billing' } },
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
    scenario(rules, 'a busy production beside a broken staging', {
      [inStaging(route('route="/users/:id",status_code="503"'))]: rate(6),
    }, { alert: 'HighErrorRatio', series: {}, labels: { namespace: 'staging', job: 'users' } }),
    scenario(rules, 'draining', { [info('OK')]: '1x10 _x50', [info('DRAINING')]: '_x10 1x50' }),
    scenario(rules, 'a short fault', { [info('OK')]: '1x28 _x2 1x30', [info('FAIL')]: '_x29 1x1 _x30' }),
    ...faults.map((fault) => scenario(rules, fault.alert, fault.series, fault)),
  ];
  writeFileSync(join(cwd, 'tests.yml'), stringify({ rule_files: ['bare.yml'], evaluation_interval: '1m', tests }));
  expect(promtool(cwd, 'test', 'rules', 'tests.yml')).toContain('SUCCESS');
});

test.for([
  { buckets: undefined, threshold: 1, slow: [['1.0', 580], ['2.5', 600]] },
  { buckets: [0.05, 0.5], threshold: 0.5, slow: [['0.05', 100], ['0.5', 580]] },
  { buckets: [0.3, 2, 8], threshold: 2, slow: [['0.3', 100], ['2.0', 580], ['8.0', 600]] },
  { buckets: [0.1, 0.8, 60], threshold: 0.8, slow: [['0.1', 100], ['0.8', 580], ['60.0', 600]] },
  { buckets: [2, 8], threshold: 2, slow: [['2.0', 580], ['8.0', 600]] },
] as const)('with the buckets $buckets, SlowRoute fires at $threshold s', async ({ buckets, threshold, slow }) => {
  const cwd = await writeRules('users', { durationBuckets: buckets });
  const [group] = (parse(readFileSync(join(cwd, 'rules.yml'), 'utf8')) as {
    groups: { rules: { alert: string; expr: string; annotations?: unknown }[] }[];
  }).groups;
  const rule = group?.rules.find(({ alert }) => alert === 'SlowRoute');
  expect(rule?.expr).toMatch(new RegExp(`>= ${threshold}$`));
  delete rule?.annotations;
  writeFileSync(join(cwd, 'bare.yml'), stringify({ groups: [{ name: 'users', rules: [rule] }] }));
  const of = (counts: readonly (readonly [string, number])[]): { series: string; values: string }[] =>
    [...counts, ['+Inf', 600] as const].map(([le, count]) => ({
      series: bucket('route="/users/:id"', le),
      values: rate(count),
    }));
  const labels = { severity: 'warning', namespace: 'prod', job: 'users', method: 'GET', route: '/users/:id' };
  const tests = [
    { series: of(slow), fires: [{ exp_labels: labels }] },
    { series: of(slow.map(([le, count]) => [le, Math.max(count, 597)] as const)), fires: [] },
  ].map(({ series, fires }) => ({
    interval: '1m',
    input_series: series,
    alert_rule_test: [{ alertname: 'SlowRoute', eval_time: '30m', exp_alerts: fires }],
  }));
  writeFileSync(join(cwd, 'tests.yml'), stringify({ rule_files: ['bare.yml'], evaluation_interval: '1m', tests }));
  expect(promtool(cwd, 'test', 'rules', 'tests.yml')).toContain('SUCCESS');
});
