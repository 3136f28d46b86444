/**
 * `postern k8s`: manifests that Kubernetes and the Prometheus operator take, and that fit what the application does.
 *
 * @module-tag package
 */

import { PodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { Service } from 'kubernetes-models/v1/Service';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createProject, runCommand } from '../support/command.js';

/** What the manifests say of an application of this name. */
async function manifestsOf(
  name: string,
  ...args: string[]
): Promise<{
  text: string;
  deployment: Deployment;
  service: Service;
  budget: PodDisruptionBudget;
  monitor: PodMonitor;
}> {
  const cwd = createProject({
    'app.mjs': `import { Postern } from 'postern';\nexport default new Postern('${name}');\n`,
  });
  const { code, stdout, stderr } = await runCommand(
    ['k8s', 'app.mjs', '--image', 'registry.example/users@sha256:0123', ...args],
    { cwd },
  );
  expect([code, stderr]).toEqual([0, '']);
  // Kubernetes reads YAML 1.1, in which `no` is false.
  const [deployment, service, budget, monitor] = parseAllDocuments(stdout, { version: '1.1' }).map(
    (document) => document.toJS() as object,
  );
  const manifests = {
    deployment: new Deployment(deployment as ConstructorParameters<typeof Deployment>[0]),
    service: new Service(service as ConstructorParameters<typeof Service>[0]),
    budget: new PodDisruptionBudget(budget as ConstructorParameters<typeof PodDisruptionBudget>[0]),
    monitor: new PodMonitor(monitor as ConstructorParameters<typeof PodMonitor>[0]),
  };
  for (const manifest of Object.values(manifests)) manifest.validate();
  return { text: stdout, ...manifests };
}

test.for([
  { name: 'users', args: [] },
  { name: 'no', args: ['--replicas', '0', '--namespace', 'on'] },
  { name: 'users', args: ['--namespace', '7eleven'] },
  { name: `a${'-'.repeat(61)}b`, args: ['--monitor-port', '9100', '--port', '8080', '--replicas', '12'] },
])(
  'the manifests of $name with $args pass the models of Kubernetes and of the Prometheus operator',
  async ({ name, args }) => {
    const { deployment, service, budget, monitor } = await manifestsOf(name, ...args);
    for (const { metadata } of [deployment, service, budget, monitor]) expect(metadata?.name).toBe(name);
    // Each finds the pods of the Deployment, and only by what they are labelled with.
    const labels = deployment.spec?.template.metadata?.labels;
    expect(labels).toEqual({ 'app.kubernetes.io/name': name });
    for (const found of [
      deployment.spec?.selector.matchLabels,
      service.spec?.selector,
      budget.spec?.selector?.matchLabels,
      monitor.spec?.selector.matchLabels,
    ])
      expect(found).toEqual(labels);
  },
);

test('probes ask what each is for, and the grace period is long enough for the drain', async () => {
  const { text, deployment, service, budget, monitor } = await manifestsOf('users');
  const pod = deployment.spec?.template.spec;
  const [container] = pod?.containers ?? [];
  expect(deployment.spec?.replicas).toBe(2);
  expect(container?.image).toBe('registry.example/users@sha256:0123');
  expect(container?.ports).toEqual([{ name: 'http', containerPort: 8000 }]);
  expect(container?.startupProbe?.httpGet).toEqual({ path: '/users/ping/', port: 'http' });
  expect(container?.livenessProbe?.httpGet).toEqual({ path: '/users/ping/', port: 'http' });
  expect(container?.readinessProbe?.httpGet).toEqual({ path: '/users/health/', port: 'http' });
  expect(container?.env).toEqual([{ name: 'PORT', value: '8000' }, { name: 'DRAIN_DELAY', value: '5000' }]);
  expect(text).not.toContain("scope: 'public'");
  expect(pod?.terminationGracePeriodSeconds).toBe(20);
  expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
  expect(container?.securityContext)
    .toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } });
  // What SERVICE_URL_TEMPLATE makes of a bare name.
  expect(service.spec?.ports).toEqual([{ name: 'http', port: 8000, targetPort: 'http' }]);
  expect(budget.spec?.maxUnavailable).toBe(1);
  expect(monitor.spec?.jobLabel).toBe('app.kubernetes.io/name');
  expect(monitor.spec?.podMetricsEndpoints).toEqual([{ port: 'http', path: '/users/metrics/' }]);
});

test('with a port for monitoring, metrics are read there, and probes ask the main port', async () => {
  const { text, deployment, service, monitor } = await manifestsOf(
    'users',
    '--port',
    '8080',
    '--monitor-port',
    '9100',
    '--namespace',
    'prod',
  );
  const [container] = deployment.spec?.template.spec?.containers ?? [];
  expect(container?.ports).toEqual([{ name: 'http', containerPort: 8080 }, { name: 'monitor', containerPort: 9100 }]);
  expect(container?.env).toEqual([
    { name: 'PORT', value: '8080' },
    { name: 'DRAIN_DELAY', value: '5000' },
    { name: 'MONITOR_PORT', value: '9100' },
  ]);
  for (const probe of [container?.startupProbe, container?.livenessProbe, container?.readinessProbe])
    expect(probe?.httpGet?.port).toBe('http');
  expect(text).toMatch(/ # .*scope: 'public'.*port: monitor/);
  expect(service.spec?.ports).toEqual([{ name: 'http', port: 8080, targetPort: 'http' }]);
  expect(monitor.spec?.podMetricsEndpoints).toEqual([{ port: 'monitor', path: '/users/metrics/' }]);
  for (const { metadata } of [deployment, service, monitor]) expect(metadata?.namespace).toBe('prod');
});
