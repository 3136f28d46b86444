/**
 * `postern k8s`: manifests that Kubernetes and the Prometheus operator take, and that fit what the application does.
 *
 * @module-tag package
 */

import { PodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { Service } from 'kubernetes-models/v1/Service';
import { fileURLToPath } from 'node:url';
import typescript from 'typescript';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createProject, runCommand } from '../support/command.js';

const MODELS = { Deployment, Service, PodDisruptionBudget, PodMonitor, NetworkPolicy, HorizontalPodAutoscaler };
type Kind = keyof typeof MODELS;
type Manifests = { readonly [K in Kind]: InstanceType<(typeof MODELS)[K]> };

/** The manifests of an application by kind, each valid for its model, and their text. */
async function manifestsOf(
  name: string,
  args: readonly string[] = [],
  options: object = {},
  image: string = 'registry.example/users@sha256:0123',
): Promise<Manifests & { readonly text: string; readonly kinds: readonly string[] }> {
  const app = `new Postern('${name}', ${JSON.stringify(options)})`;
  const cwd = createProject({ 'app.mjs': `import { Postern } from 'postern';\nexport default ${app};\n` });
  const { code, stdout, stderr } = await runCommand(['k8s', 'app.mjs', '--image', image, ...args], { cwd });
  expect([code, stderr]).toEqual([0, '']);
  // Kubernetes reads YAML 1.1, in which `no` is false.
  const documents = parseAllDocuments(stdout, { version: '1.1' }).map((document) => document.toJS() as { kind: Kind });
  const manifests = documents.map((document) => {
    const manifest = new MODELS[document.kind](document as never);
    manifest.validate();
    return [document.kind, manifest] as const;
  });
  const kinds = documents.map(({ kind }) => kind);
  return Object.assign(Object.fromEntries(manifests) as unknown as Manifests, { text: stdout, kinds });
}

/** The environment of the container. */
function environmentOf({ Deployment: { spec } }: Manifests): Record<string, string | undefined> {
  const variables = spec?.template.spec?.containers[0]?.env ?? [];
  expect(new Set(variables.map(({ name }) => name)).size).toBe(variables.length);
  return Object.fromEntries(variables.map(({ name, value }) => [name, value]));
}

test.for([
  { name: 'users', args: [] },
  { name: 'no', args: ['--replicas', '0', '--namespace', 'on'] },
  { name: 'users', args: ['--namespace', '7eleven'] },
  { name: `a${'-'.repeat(61)}b`, args: ['--monitor-port', '9100', '--port', '8080', '--replicas', '12'] },
])(
  'the manifests of $name with $args pass the models of Kubernetes and of the Prometheus operator',
  async ({ name, args }) => {
    const { Deployment: deployment, Service: service, PodDisruptionBudget: budget, PodMonitor: monitor, kinds } =
      await manifestsOf(name, args);
    expect(kinds).toEqual(['Deployment', 'Service', 'PodDisruptionBudget', 'PodMonitor']);
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
  const { text, Deployment: deployment, Service: service, PodDisruptionBudget: budget, PodMonitor: monitor } =
    await manifestsOf('users');
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
  // No number: OpenShift chooses the user, and refuses any other.
  expect(pod?.securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  expect(container?.securityContext)
    .toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } });
  // What SERVICE_URL_TEMPLATE makes of a bare name.
  expect(service.spec?.ports).toEqual([{ name: 'http', port: 8000, targetPort: 'http' }]);
  expect(budget.spec?.maxUnavailable).toBe(1);
  expect(monitor.spec?.jobLabel).toBe('app.kubernetes.io/name');
  expect(monitor.spec?.podMetricsEndpoints).toEqual([{ port: 'http', path: '/users/metrics/' }]);
});

test('with a port for monitoring, metrics are read there, and probes ask the main port', async () => {
  const { text, Deployment: deployment, Service: service, PodMonitor: monitor } =
    await manifestsOf('users', ['--port', '8080', '--monitor-port', '9100', '--namespace', 'prod']);
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

test.for([
  { image: 'users', version: undefined },
  { image: 'users:1.4.2', version: '1.4.2' },
  { image: 'localhost:5000/users', version: undefined },
  { image: 'localhost:5000/users:v1_2-rc.1', version: 'v1_2-rc.1' },
  { image: 'registry.example/users@sha256:0123', version: undefined },
  { image: 'registry.example/users:1.4.2@sha256:0123', version: '1.4.2' },
])('APPLICATION_VERSION of the image $image is $version', async ({ image, version }) => {
  expect(environmentOf(await manifestsOf('users', [], {}, image))['APPLICATION_VERSION']).toBe(version);
});

test('SERVICE_CONNECTIONS names the connections of the code, and a URL of another place is not among them', async () => {
  const options = {
    connections: { billing: {}, mail: { retry: 1 } },
    settings: { SERVICE_CONNECTIONS: ['audit=http://10.0.0.7'] },
  };
  expect(environmentOf(await manifestsOf('users', [], options))['SERVICE_CONNECTIONS']).toBe('audit,billing,mail');
  expect(environmentOf(await manifestsOf('users'))).not.toHaveProperty('SERVICE_CONNECTIONS');
});

test('--env adds variables, overrides what the command knows, and its drain decides the grace period', async () => {
  const values = ['EMPTY=', 'TEXT=a: "b" # c\n\\d=e', 'NO=no', 'SERVICE_CONNECTIONS=mail=http://10.0.0.7:8080',
    'APPLICATION_VERSION=7', 'DRAIN_DELAY=7500'];
  const manifests = await manifestsOf('users', values.flatMap((value) => ['--env', value]), { connections: { a: {} } });
  expect(environmentOf(manifests)).toEqual({
    PORT: '8000', DRAIN_DELAY: '7500', SERVICE_CONNECTIONS: 'mail=http://10.0.0.7:8080', APPLICATION_VERSION: '7',
    EMPTY: '', TEXT: 'a: "b" # c\n\\d=e', NO: 'no',
  });
  expect(manifests.Deployment.spec?.template.spec?.terminationGracePeriodSeconds).toBe(23);
});

test('--network-policy lets in the namespace, and any namespace on the monitor port', async () => {
  const one = await manifestsOf('users', ['--network-policy']);
  expect(one.kinds.slice(4)).toEqual(['NetworkPolicy']);
  const inside = { from: [{ podSelector: {} }], ports: [{ port: 8000 }] };
  expect(one.NetworkPolicy.spec).toEqual({
    podSelector: { matchLabels: { 'app.kubernetes.io/name': 'users' } },
    policyTypes: ['Ingress'],
    ingress: [inside],
  });
  const two = await manifestsOf('users', ['--network-policy', '--monitor-port', '9100', '--namespace', 'prod']);
  expect(two.NetworkPolicy.spec?.ingress)
    .toEqual([inside, { from: [{ namespaceSelector: {} }], ports: [{ port: 9100 }] }]);
  expect(two.NetworkPolicy.metadata?.namespace).toBe('prod');
});

test('--max-replicas adds an autoscaler, and the Deployment leaves the number of instances to it', async () => {
  const { HorizontalPodAutoscaler: autoscaler, Deployment: deployment } =
    await manifestsOf('no', ['--max-replicas', '8', '--replicas', '3']);
  expect(deployment.spec).not.toHaveProperty('replicas');
  expect(autoscaler.spec).toMatchObject({
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'no' },
    minReplicas: 3,
    maxReplicas: 8,
    metrics: [{ type: 'Resource', resource: { name: 'cpu' } }],
  });
});

test('no manifest has a member that Kubernetes does not know', async () => {
  const args = ['--monitor-port', '9100', '--network-policy', '--max-replicas', '8', '--namespace', 'prod'];
  const manifests = await manifestsOf('users', args, { connections: { billing: {} } });
  expect(manifests.kinds.toSorted()).toEqual(Object.keys(MODELS).toSorted());
  const file = fileURLToPath(new URL('manifests.ts', import.meta.url));
  const source = `
import type { IPodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import type { IService } from 'kubernetes-models/v1/Service';
${parseAllDocuments(manifests.text, { version: '1.1' }).map((document) => {
  const manifest = document.toJS() as { kind: string };
  return `export const ${manifest.kind}: I${manifest.kind} = ${JSON.stringify(manifest)};`;
}).join('\n')}`;
  const options: typescript.CompilerOptions = {
    strict: true, noEmit: true, skipLibCheck: true, types: [],
    module: typescript.ModuleKind.NodeNext, target: typescript.ScriptTarget.ES2022,
  };
  const host = typescript.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (name) => name === file || fileExists.call(host, name);
  host.getSourceFile = (name, target) =>
    name === file ? typescript.createSourceFile(name, source, target) : getSourceFile.call(host, name, target);
  const program = typescript.createProgram([file], options, host);
  const problems = typescript.getPreEmitDiagnostics(program)
    .map(({ messageText }) => typescript.flattenDiagnosticMessageText(messageText, '\n'));
  expect(problems).toEqual([]);
});

test.for([
  { args: ['--env', 'A'], message: '--env is "A"; give NAME=VALUE' },
  { args: ['--env', '1A=2'], message: '--env is "1A=2"; give NAME=VALUE' },
  { args: ['--env', 'PORT=1'], message: '--env sets PORT; use --port instead' },
  { args: ['--env', 'MONITOR_PORT=1'], message: '--env sets MONITOR_PORT; use --monitor-port instead' },
  { args: ['--env', 'DRAIN_DELAY=5s'], message: '--env sets DRAIN_DELAY to 5s; give ms' },
  { args: ['--max-replicas', '1'], message: '--max-replicas is 1 and --replicas is 2; give 1 to 1' },
  { args: ['--max-replicas', '3', '--replicas', '0'],
    message: '--max-replicas is 3 and --replicas is 0; give 1 to 3' },
])('$args is wrong usage', async ({ args, message }) => {
  const cwd = createProject({
    'app.mjs': "import { Postern } from 'postern';\nexport default new Postern('users');\n",
  });
  const { code, stdout, stderr } = await runCommand(['k8s', 'app.mjs', '--image', 'users', ...args], { cwd });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
});
