/* `postern gateway`: the public routes of applications, as the configuration of one gateway in front of them. */

import { choice, defineCommand, parsed, repeated, text, UsageError, type Command } from './command.js';
import { toCaddy } from '../gateway/caddy.js';
import type { GatewayService, ListenerOptions } from '../gateway/exporter-options.js';
import { toGatewayApi } from '../gateway/gateway-api.js';
import { toHAProxy } from '../gateway/haproxy.js';
import { toKong } from '../gateway/kong.js';
import { toNginx } from '../gateway/nginx.js';
import { loadApp } from './module.js';

const usage = `Usage: postern gateway MODULE... --format FORMAT [OPTION]...

Prints the configuration of a gateway that forwards requests for the public
routes of the application that MODULE exports as its default. Exits with 1, and
prints no configuration, if the gateway can't express a route, or if public
routes of two services have the same path.

  MODULE               one service, at --upstream
  MODULE=URL           a service and where it is; several services are given
                       like this
  MODULE=URL,URL       with several addresses
  /prefix:MODULE=URL   below a prefix, which the gateway removes

  --format FORMAT      nginx, haproxy, caddy, kong or gateway-api
  --upstream URL       where the one service is: http://10.0.0.7:8000; several,
                       with commas between them
  --service NAME       its name in the configuration; default: the name of the
                       application
  --listen HOST:PORT   where the gateway listens; default: 127.0.0.1:8080
                       (nginx, haproxy, caddy)
  --host NAME          serve this name; may be repeated; default: any name
  --tls CERT,KEY       serve HTTPS by these files (nginx, haproxy, caddy)
  --include FILE       directives of the site (nginx, haproxy, caddy)
  --gateway NAME       the Gateway to attach to (gateway-api, required there)
  --namespace NAME     namespace of the manifests (gateway-api)
`;

type Exporter = (services: readonly GatewayService[], options: ListenerOptions) => string;

const FORMATS = ['nginx', 'haproxy', 'caddy', 'kong', 'gateway-api'] as const;
const EXPORTERS: Readonly<Record<(typeof FORMATS)[number], Exporter>> = {
  nginx: toNginx,
  haproxy: toHAProxy,
  caddy: toCaddy,
  kong: toKong,
  'gateway-api': (services, { gateway, ...options }) => {
    if (gateway === undefined) throw new UsageError('--gateway is missing; give the name of the Gateway to attach to');
    return toGatewayApi(services, { ...options, gateway });
  },
};

const OPTIONS = {
  format: choice(FORMATS),
  upstream: text,
  service: text,
  listen: text,
  host: repeated(text),
  tls: parsed('give two files, CERT,KEY', parseTls),
  include: text,
  gateway: text,
  namespace: text,
};

export const gateway: Command = defineCommand(usage, 'MODULE...', OPTIONS, async (values, ...modules) => {
  const { format, upstream, service, host: hosts, ...others } = values;
  if (format === undefined) throw new UsageError(`--format is missing; give one of ${FORMATS.join(', ')}`);
  if (upstream !== undefined && modules.length > 1)
    throw new UsageError(
      `unexpected argument ${JSON.stringify(modules[1])} next to --upstream; give MODULE=URL for each of several`,
    );
  const operands = modules.map((operand) => parseOperand(operand, upstream));
  if (service !== undefined && operands.length > 1)
    throw new UsageError('--service is for one MODULE; several are named after their applications');

  const services: GatewayService[] = [];
  for (const { file, ...address } of operands) {
    const { name, router } = await loadApp(file);
    services.push({ ...address, router, service: service ?? name });
  }
  // An exporter refuses the name of an option that its gateway does not take.
  const given = Object.entries({ ...others, hosts }).filter(([, value]) => value !== undefined);
  const options: ListenerOptions = Object.fromEntries(given);
  try {
    return { text: EXPORTERS[format](services, options) };
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message) : error;
  }
});

type Operand = Pick<GatewayService, 'prefix' | 'upstream'> & { readonly file: string };

/** A prefix has a slash in front and no colon; an address begins with its scheme. */
const OPERAND = /^(?:(\/[^:=]*):)?(.+?)(?:=(https?:\/\/.*))?$/is;

/** @param upstream where the service is, for an operand that doesn't say */
function parseOperand(text: string, upstream: string | undefined): Operand {
  const [, prefix, file = '', own] = OPERAND.exec(text) ?? [];
  if (own !== undefined && upstream !== undefined)
    throw new UsageError(`--upstream is given, and ${JSON.stringify(text)} has a URL as well; leave one of them out`);
  const urls = own ?? upstream;
  if (urls === undefined)
    throw new UsageError(`--upstream is missing; give the URL of the service, or ${file}=URL for each of several`);
  return { file, prefix, upstream: urls.split(',') };
}

function parseTls(text: string): { certificate: string; key: string } | undefined {
  const [certificate, key, ...others] = text.split(',');
  return certificate && key && others.length === 0 ? { certificate, key } : undefined;
}
