/* `postern k8s`: an application as manifests for Kubernetes. */

import { DRAIN_TIMEOUT_MS, SIGTERM_DELAY_MS } from '../app/closing.js';
import { LABEL } from '../gateway/exporter-options.js';
import { DEFAULT_PORT } from '../mesh/settings.js';
import { defineCommand, flag, parsed, repeated, UsageError, whole, type Command, type Values } from './command.js';
import { loadMonitoredApp } from './module.js';

const usage = `Usage: postern k8s MODULE --image IMAGE [OPTION]...

Prints manifests for the application that MODULE exports as its default, for
kubectl apply -f -: Deployment, Service, PodDisruptionBudget and PodMonitor.
The services that it is connected to are in SERVICE_CONNECTIONS, and the tag of
the image is APPLICATION_VERSION.

  --image IMAGE      what to run: registry.example/users:1.4.2
  --replicas N       how many instances; default: 2
  --max-replicas N   a HorizontalPodAutoscaler that adds instances by CPU
  --namespace NAME   namespace of the manifests
  --port P           where it listens, and its Service; default: ${DEFAULT_PORT}
  --monitor-port P   a second port, for metrics (MONITOR_PORT)
  --env NAME=VALUE   another environment variable; may be repeated
  --network-policy   a NetworkPolicy: requests from the namespace only, and with
                     --monitor-port from any namespace on that port
`;

const IMAGE = /^[\w][\w.:/@-]*$/;

/** The tag of an image: not the port of its registry, and not its digest. */
const TAG = /^[^@]*:([\w.-]+)(?:@.*)?$/;
const VARIABLE = /^([-._a-zA-Z][-._a-zA-Z0-9]*)=(.*)$/s;
/** Variables that the manifests set by another option. */
const OWN_VARIABLES = new Map([['PORT', '--port'], ['MONITOR_PORT', '--monitor-port']]);

const LABEL_REMEDY = 'give a DNS label: lower-case letters, digits and hyphens, at most 63';

const OPTIONS = {
  image: parsed('give registry/name:tag', (text) => (IMAGE.test(text) ? text : undefined)),
  replicas: whole(0, 1000),
  namespace: parsed(LABEL_REMEDY, (text) => (LABEL.test(text) ? text : undefined)),
  port: whole(1, 65_535),
  'monitor-port': whole(1, 65_535),
  'max-replicas': whole(1, 1000),
  'network-policy': flag,
  env: repeated(parsed('give NAME=VALUE', (text) => (VARIABLE.test(text) ? text : undefined))),
};

export const k8s: Command = defineCommand(usage, 'MODULE', OPTIONS, async (values, file) => {
  const { image, port = DEFAULT_PORT, 'monitor-port': monitorPort, replicas = 2, 'max-replicas': maxReplicas } = values;
  if (image === undefined) throw new UsageError('--image is missing; give the image to run');
  if (monitorPort === port) throw new UsageError(`--port and --monitor-port are both ${port}; give two`);
  if (maxReplicas !== undefined && (replicas < 1 || maxReplicas < replicas))
    throw new UsageError(`--max-replicas is ${maxReplicas} and --replicas is ${replicas}; give 1 to ${maxReplicas}`);

  const { name, settings, router } = await loadMonitoredApp(file);
  if (monitorPort === undefined && !router.routes.some(({ path }) => path === `/${name}/metrics/`))
    throw new UsageError('--monitor-port is missing; the application has the option monitor, so give its port');
  // The name of a Service begins with a letter.
  if (!LABEL.test(name) || /^\d/.test(name))
    throw new UsageError(`the application's name is ${JSON.stringify(name)}; ${LABEL_REMEDY}, a letter first`);
  const connections = settings?.SERVICE_CONNECTIONS.map((entry) => entry.split('=', 1)[0]).join() ?? '';
  const variables = new Map([['PORT', String(port)], ['DRAIN_DELAY', String(SIGTERM_DELAY_MS)]]);
  if (monitorPort !== undefined) variables.set('MONITOR_PORT', String(monitorPort));
  if (connections !== '') variables.set('SERVICE_CONNECTIONS', connections);
  const [, version] = TAG.exec(image) ?? [];
  if (version !== undefined) variables.set('APPLICATION_VERSION', version);
  for (const text of values.env ?? []) {
    const [, variable = '', value = ''] = VARIABLE.exec(text) ?? [];
    const own = OWN_VARIABLES.get(variable);
    if (own !== undefined) throw new UsageError(`--env sets ${variable}; use ${own} instead`);
    variables.set(variable, value);
  }
  if (!/^\d{1,7}$/.test(variables.get('DRAIN_DELAY') ?? ''))
    throw new UsageError(`--env sets DRAIN_DELAY to ${variables.get('DRAIN_DELAY')}; give ms`);
  return { text: writeManifests(name, variables, { ...values, image, port, replicas }) };
});

interface ManifestOptions extends Values<typeof OPTIONS> {
  readonly image: string;
  readonly port: number;
  readonly replicas: number;
}

/** Time for close hooks and the end of the process. */
const SPARE_SECONDS = 5;

/** Writes documents of YAML. An instance has the time of its drain to end, and some to spare. */
function writeManifests(name: string, variables: ReadonlyMap<string, string>, options: ManifestOptions): string {
  const { image, port, replicas, namespace, 'monitor-port': monitorPort, 'max-replicas': maxReplicas } = options;
  const delaySeconds = Math.ceil(Number(variables.get('DRAIN_DELAY')) / 1000);
  const flightSeconds = DRAIN_TIMEOUT_MS / 1000;
  // A service may be called "no", which YAML takes for false.
  const quoted = JSON.stringify(name);
  const label = `app.kubernetes.io/name: ${quoted}`;
  const metadata = `metadata:
  name: ${quoted}
${namespace === undefined ? '' : `  namespace: ${JSON.stringify(namespace)}\n`}  labels:
    ${label}`;
  const monitor = `
            - name: monitor
              containerPort: ${monitorPort}
          # With scope: 'public' the main port has no monitoring: write "port: monitor" in the three probes.`;
  const env = Array.from(
    variables,
    ([variable, value]) => `
            - name: ${JSON.stringify(variable)}
              value: ${JSON.stringify(value)}`,
  );
  const probe = (kind: string, endpoint: string, periodSeconds: number, failureThreshold: number): string =>
    `${kind}Probe:
            httpGet:
              path: /${name}/${endpoint}/
              port: http
            periodSeconds: ${periodSeconds}
            timeoutSeconds: 2
            failureThreshold: ${failureThreshold}`;
  return `# ${name}, for kubectl apply -f. Written by Postern; what you change here is yours.
apiVersion: apps/v1
kind: Deployment
${metadata}
spec:
${maxReplicas === undefined ? `  replicas: ${replicas}\n` : ''}  strategy:
    type: RollingUpdate
    rollingUpdate:
      # The old instance goes when the new one is ready.
      maxSurge: 1
      maxUnavailable: 0
  selector:
    matchLabels:
      ${label}
  template:
    metadata:
      labels:
        ${label}
    spec:
      # ${delaySeconds} s of DRAIN_DELAY, ${flightSeconds} s for what is in flight, ${SPARE_SECONDS} s to spare.
      terminationGracePeriodSeconds: ${delaySeconds + flightSeconds + SPARE_SECONDS}
      automountServiceAccountToken: false
      # A Service named "monitor" would set MONITOR_PORT in every container.
      enableServiceLinks: false
      securityContext:
        # The image names the user by number (USER 1000:1000), or OpenShift chooses one.
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              ${label}
      containers:
        - name: ${quoted}
          image: ${JSON.stringify(image)}
          env:${env.join('')}
          ports:
            - name: http
              containerPort: ${port}${monitorPort === undefined ? '' : monitor}
          # Alive means that the process answers: no dependency can get it killed.
          ${probe('startup', 'ping', 1, 60)}
          ${probe('liveness', 'ping', 10, 3)}
          # 503 while a check fails, and from the first moment of a drain.
          ${probe('readiness', 'health', 5, 2)}
          resources:
            requests:
              cpu: 100m
              memory: 128Mi
            limits:
              memory: 256Mi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop:
                - ALL
---
# http://${name}:${port} for the services that it is connected to.
apiVersion: v1
kind: Service
${metadata}
spec:
  selector:
    ${label}
  ports:
    - name: http
      port: ${port}
      targetPort: http
---
apiVersion: policy/v1
kind: PodDisruptionBudget
${metadata}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      ${label}
---
# For the Prometheus operator: the job is called ${name}, as in the rules of postern alerts.
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
${metadata}
spec:
  jobLabel: app.kubernetes.io/name
  selector:
    matchLabels:
      ${label}
  podMetricsEndpoints:
    - port: ${monitorPort === undefined ? 'http' : 'monitor'}
      path: /${name}/metrics/
${options['network-policy'] ? writeNetworkPolicy(metadata, label, port, monitorPort) : ''}${
    maxReplicas === undefined ? '' : writeAutoscaler(metadata, quoted, replicas, maxReplicas)
  }`;
}

function writeNetworkPolicy(metadata: string, label: string, port: number, monitorPort: number | undefined): string {
  const monitor = `    - from:
        - namespaceSelector: {}
      ports:
        - port: ${monitorPort}
`;
  return `---
# Requests come from the namespace. A gateway in another one needs a rule of its own.
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
${metadata}
spec:
  podSelector:
    matchLabels:
      ${label}
  policyTypes:
    - Ingress
  ingress:
    - from:
        - podSelector: {}
      ports:
        - port: ${port}
${monitorPort === undefined ? '' : monitor}`;
}

function writeAutoscaler(metadata: string, quoted: string, replicas: number, maxReplicas: number): string {
  return `---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
${metadata}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: ${quoted}
  minReplicas: ${replicas}
  maxReplicas: ${maxReplicas}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          # Of the one core that a process of Node.js computes on, whatever the container requests.
          type: AverageValue
          averageValue: 700m
`;
}
