/** Checks the options of the exporters once, so that what they print needs no quoting. */

/** Options of every exporter. */
export interface GatewayOptions {
  /** Name of the service, a DNS label; it names the pieces of the configuration. */
  readonly service: string;
  /** Where the service listens: `http://10.0.0.7:8000`; http or https, without a path. */
  readonly upstream: string;
  /** Where the gateway listens, as `host:port`; nginx, HAProxy and Caddy only. Default: `127.0.0.1:8080`. */
  readonly listen?: string | undefined;
  /** Names in `Host` that are served; any when absent or empty. */
  readonly hosts?: readonly string[] | undefined;
  /** Name of the `Gateway` to attach to; Gateway API only. */
  readonly gateway?: string | undefined;
  /** Namespace of the manifests; Gateway API only. */
  readonly namespace?: string | undefined;
}

/** Options, checked and taken apart. */
export interface Settings {
  readonly service: string;
  readonly upstream: Upstream;
  readonly listen: { readonly host: string; readonly port: number };
  /** Lower-case. */
  readonly hosts: readonly string[];
  readonly gateway: string | undefined;
  readonly namespace: string | undefined;
}

/** Address of the service. */
export interface Upstream {
  readonly protocol: 'http' | 'https';
  /** A name, an IPv4 address, or an IPv6 address in brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * Checks the options of an exporter.
 *
 * @throws {TypeError} for an option that is missing, unknown or malformed; the message has the value and the remedy
 */
export function checkOptions(options: GatewayOptions): Settings {
  if (typeof options !== 'object' || options === null) throw new TypeError(`options are ${String(options)}; give an object with service and upstream`);
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name)) throw new TypeError(`unknown option "${name}"; use ${[...OPTIONS].join(', ')}`);
  }
  const { service, upstream, listen = '127.0.0.1:8080', hosts = [], gateway, namespace } = options;
  assertText('service', service, LABEL, 'a DNS label such as "users": lower-case letters, digits and hyphens, at most 63');
  if (gateway !== undefined) assertText('gateway', gateway, DNS_NAME, 'the name of a Gateway, such as "public"');
  if (namespace !== undefined) assertText('namespace', namespace, LABEL, 'the name of a namespace, such as "default"');
  if (!Array.isArray(hosts)) throw wrong('hosts', hosts, 'a list of names such as ["users.example.com"]');
  const names = hosts.map((host: unknown) => {
    assertText('hosts', host, HOST_NAME, 'names such as "users.example.com", without a port or a wildcard');
    return host.toLowerCase();
  });
  return { service, upstream: checkUpstream(upstream), listen: checkListen(listen), hosts: [...new Set(names)], gateway, namespace };
}

const OPTIONS: ReadonlySet<string> = new Set(['service', 'upstream', 'listen', 'hosts', 'gateway', 'namespace']);

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** A DNS subdomain, as Kubernetes names its objects and hosts (RFC 1123). */
export const DNS_NAME: RegExp = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const HOST_NAME = /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}))*$/;
const LISTEN = /^(\*|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/;
const UPSTREAM_HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])$/;

function checkUpstream(upstream: string): Upstream {
  const remedy = 'an http or https URL without a path, such as "http://127.0.0.1:8000"';
  if (typeof upstream !== 'string' || !/^https?:\/\/[^\s/?#@]+\/?$/i.test(upstream) || !URL.canParse(upstream)) throw wrong('upstream', upstream, remedy);
  const { protocol, hostname, port } = new URL(upstream);
  if (!UPSTREAM_HOST.test(hostname) || port === '0') throw wrong('upstream', upstream, remedy);
  const secure = protocol === 'https:';
  return { protocol: secure ? 'https' : 'http', host: hostname, port: port === '' ? (secure ? 443 : 80) : Number(port) };
}

function checkListen(listen: string): { host: string; port: number } {
  const [, host, port] = (typeof listen === 'string' ? LISTEN.exec(listen) : null) ?? [];
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) throw wrong('listen', listen, '"host:port", such as "127.0.0.1:8080" or "*:8080"');
  return { host, port: Number(port) };
}

function assertText(name: string, value: unknown, pattern: RegExp, remedy: string): asserts value is string {
  if (typeof value !== 'string' || !pattern.test(value)) throw wrong(name, value, remedy);
}

function wrong(name: string, value: unknown, remedy: string): TypeError {
  return new TypeError(`option "${name}" is ${value === undefined ? 'missing' : JSON.stringify(value)}; give ${remedy}`);
}
