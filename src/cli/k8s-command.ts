/* `postern k8s`: an application as manifests for Kubernetes. */

import { defineCommand, parsed, UsageError, whole, type Command, type Values } from './command.js';
import { loadMonitoredApp } from './module.js';

const usage = `Usage: postern k8s MODULE --image IMAGE [OPTION]...

Prints manifests for the application that MODULE exports as its default, for
kubectl apply -f -: Deployment, Service, PodDisruptionBudget and PodMonitor.

  --image IMAGE      what to run: registry.example/users:1.4.2
  --replicas N       how many instances; default: 2
  --namespace NAME   namespace of the manifests
  --port P           where it listens, and its Service; default: 8000
  --monitor-port P   a second port, for metrics (MONITOR_PORT)
`;

/** Valid name of a Kubernetes namespace (RFC 1123, section 2.1). The name of a Service begins with a letter. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const IMAGE = /^[\w][\w.:/@-]*$/;

const LABEL_REMEDY = 'give a DNS label: lower-case letters, digits and hyphens, at most 63';

const OPTIONS = {
  image: parsed('give registry/name:tag', (text) => (IMAGE.test(text) ? text : undefined)),
  replicas: whole(0, 1000),
  namespace: parsed(LABEL_REMEDY, (text) => (LABEL.test(text) ? text : undefined)),
  port: whole(1, 65_535),
  'monitor-port': whole(1, 65_535),
};

export const k8s: Command = defineCommand(usage, 'MODULE', OPTIONS, async (values, file) => {
  const { image, port = 8000, 'monitor-port': monitorPort } = values;
  if (image === undefined) throw new UsageError('--image is missing; give the image to run');
  if (monitorPort === port) throw new UsageError(`--port and --monitor-port are both ${port}; give two`);

  const { name } = await loadMonitoredApp(file);
  if (!LABEL.test(name) || /^\d/.test(name))
    throw new UsageError(`the application's name is ${JSON.stringify(name)}; ${LABEL_REMEDY}, a letter first`);
  return { text: writeManifests(name, image, port, values) };
});

/**
 * Four documents of YAML. An instance is given 20 s to end: the defaults of `run()`, which are 5 s in which load
 * balancers still send requests and 10 s for requests in flight, and 5 s for close hooks and the end of the process.
 */
function writeManifests(name: string, image: string, port: number, options: Values<typeof OPTIONS>): string {
  const { replicas = 2, namespace, 'monitor-port': monitorPort } = options;
  // A service may be called "no", which YAML takes for false.
  const quoted = JSON.stringify(name);
  const label = `app.kubernetes.io/name: ${quoted}`;
  const metadata = `metadata:
  name: ${quoted}
${namespace === undefined ? '' : `  namespace: ${JSON.stringify(namespace)}\n`}  labels:
    ${label}`;
  const [variable, named, metricsPort] =
    monitorPort === undefined
      ? ['', '', 'http']
      : [
          `\n            - name: MONITOR_PORT\n              value: "${monitorPort}"`,
          `\n            - name: monitor\n              containerPort: ${monitorPort}
          # With scope: 'public' the main port has no monitoring: write "port: monitor" in the three probes.`,
          'monitor',
        ];
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
  replicas: ${replicas}
  strategy:
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
      # 5 s of DRAIN_DELAY, 10 s for what is in flight, 5 s to spare.
      terminationGracePeriodSeconds: 20
      automountServiceAccountToken: false
      # A Service named "monitor" would set MONITOR_PORT in every container.
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        runAsGroup: 1000
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
          env:
            - name: PORT
              value: "${port}"
            - name: DRAIN_DELAY
              value: "5000"${variable}
          ports:
            - name: http
              containerPort: ${port}${named}
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
    - port: ${metricsPort}
      path: /${name}/metrics/
`;
}
