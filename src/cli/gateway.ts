/** `postern gateway`: the public routes of an application, as the configuration of a gateway. */

import { parseChoice, parseCommand, UsageError, type Outcome } from './command.js';
import { loadApp } from './module.js';

export const usage: string = `Usage: postern gateway MODULE --format FORMAT --upstream URL [OPTION]...

Prints the configuration of a gateway that lets in the public routes of the
application that MODULE exports as its default, and nothing else. Exits with 1,
and prints no configuration, if the gateway can't express a route.

  --format FORMAT      nginx, haproxy, caddy, kong or gateway-api
  --upstream URL       where the service is: http://10.0.0.7:8000
  --service NAME       its name in the configuration; that of the application
                       unless given
  --listen HOST:PORT   where the gateway listens; 127.0.0.1:8080 unless given
                       (nginx, haproxy, caddy)
  --host NAME          serve this name only; may be repeated
  --gateway NAME       the Gateway to attach to (gateway-api, required there)
  --namespace NAME     namespace of the manifests (gateway-api)
`;

const EXPORTERS = { nginx: 'toNginx', haproxy: 'toHAProxy', caddy: 'toCaddy', kong: 'toKong' } as const;
const FORMATS = ['nginx', 'haproxy', 'caddy', 'kong', 'gateway-api'] as const;

/** @throws {Error} when the module can't be used, or an option is wrong */
export async function run(args: string[]): Promise<Outcome> {
  const text = { type: 'string' } as const;
  const options = { format: text, upstream: text, service: text, listen: text, host: { type: 'string', multiple: true }, gateway: text, namespace: text } as const;
  const { values, positionals } = parseCommand(args, options, ['MODULE']);
  const { upstream, service, listen, host: hosts, gateway, namespace } = values;
  if (values.format === undefined) throw new UsageError(`--format is missing; give one of ${FORMATS.join(', ')}`);
  const format = parseChoice('format', values.format, FORMATS);
  if (upstream === undefined) throw new UsageError('--upstream is missing; give the URL of the service');
  if (format === 'gateway-api' && gateway === undefined) throw new UsageError('--gateway is missing; give the name of the Gateway to attach to');

  const { name, router } = await loadApp(positionals[0] ?? '');
  const exporters = await import('../gateway.js');
  const settings = { service: service ?? name, upstream, listen, hosts, namespace };
  try {
    if (format === 'gateway-api') return { text: exporters.toGatewayApi(router, { ...settings, gateway: gateway ?? '' }), exitCode: 0 };
    return { text: exporters[EXPORTERS[format]](router, { ...settings, gateway }), exitCode: 0 };
  } catch (error) {
    if (error instanceof exporters.GatewayError) return { text: '', complaint: error.message, exitCode: 1 };
    if (error instanceof TypeError) throw new UsageError(error.message);
    throw error;
  }
}
