/* `postern k8s`: an application as manifests for Kubernetes. */

import { parseCommand, parseWhole, UsageError, type Outcome, type Command } from './command.js';
import { writeManifests } from './manifests.js';
import { loadMonitoredApp } from './module.js';

const usage = `Usage: postern k8s MODULE --image IMAGE [OPTION]...

Prints manifests for the application that MODULE exports as its default, for
kubectl apply -f -: Deployment, Service, PodDisruptionBudget and PodMonitor.

  --image IMAGE      what to run: registry.example/users:1.4.2
  --replicas N       how many instances; 2 unless given
  --namespace NAME   namespace of the manifests
  --port P           where it listens, and its Service; 8000 unless given
  --monitor-port P   a second port, for metrics (MONITOR_PORT)
`;

export const k8s: Command = { usage, run };

/** What Kubernetes takes for the name of a Service (RFC 1035, section 2.3.1). */
const LABEL = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const IMAGE = /^[\w][\w.:/@-]*$/;

/** @throws {UsageError} for a wrong option, and a name that is no DNS label */
async function run(args: string[]): Promise<Outcome> {
  const text = { type: 'string' } as const;
  const options = { image: text, replicas: text, namespace: text, port: text, 'monitor-port': text };
  const { values, positionals } = parseCommand(args, options, ['MODULE']);
  const { image, namespace } = values;
  if (image === undefined) throw new UsageError('--image is missing; give the image to run');
  if (!IMAGE.test(image)) throw new UsageError(`--image is ${JSON.stringify(image)}; give registry/name:tag`);
  if (namespace !== undefined) assertLabel('--namespace', namespace);
  const replicas = parseWhole('replicas', values.replicas ?? '2', 0, 1000);
  const port = parseWhole('port', values.port ?? '8000', 1, 65_535);
  const monitor = values['monitor-port'];
  const monitorPort = monitor === undefined ? undefined : parseWhole('monitor-port', monitor, 1, 65_535);
  if (monitorPort === port) throw new UsageError(`--port and --monitor-port are both ${port}; give two`);

  const { name } = await loadMonitoredApp(positionals[0] ?? '');
  assertLabel("the application's name", name);
  return { text: writeManifests({ name, image, replicas, namespace, port, monitorPort }) };
}

function assertLabel(what: string, text: string): void {
  if (LABEL.test(text)) return;
  throw new UsageError(
    `${what} is ${JSON.stringify(text)}; give a DNS label: lower-case letters, digits and hyphens, a letter first, at most 63`,
  );
}
