/* Arguments and errors of the exporters. Arguments are checked once, so that the texts need no quoting. */

import { readFileSync } from 'node:fs';
import { assertOptions } from '../base/options-check.js';
import type { RouteInfo } from '../routing/router.js';

/** The part of a `Router` that the exporters read. */
export interface RouteTable {
  /** In order of registration. */
  readonly routes: readonly RouteInfo[];
}

/** Options of the gateway itself. */
export interface ListenerOptions {
  /** Where the gateway listens, as `host:port`; nginx, HAProxy and Caddy only. Default: `127.0.0.1:8080`. */
  readonly listen?: string | undefined;
  /** Names in `Host` that are served; every other name is a 404. Default: any. */
  readonly hosts?: readonly string[] | undefined;
  /**
   * Serves HTTPS, with HTTP/2, by these PEM files; nginx, HAProxy and Caddy only. HAProxy reads the key from the
   * certificate's file, or from the file of that name with `.key` after it.
   */
  readonly tls?: { readonly certificate: string; readonly key: string } | undefined;
  /**
   * A file of directives that the site adds by hand (CORS, rate limits, logs), included where the gateway takes
   * site-wide directives; nginx, HAProxy and Caddy only. HAProxy has no include: the configuration has the text that
   * the file has when the configuration is written.
   */
  readonly include?: string | undefined;
  /** Name of the `Gateway` to attach to; Gateway API only. */
  readonly gateway?: string | undefined;
  /** Namespace of the manifests; Gateway API only. */
  readonly namespace?: string | undefined;
}

/** Options of every exporter, for one service. */
export interface GatewayOptions extends ListenerOptions {
  /** Name of the service, a DNS label; it names the pieces of the configuration. */
  readonly service: string;
  /**
   * Where the service listens: `http://10.0.0.7:8000`; http or https, without a path. Several are load-balanced: an
   * upstream that refuses a connection is skipped, and no request that is not idempotent is sent twice.
   */
  readonly upstream: string | readonly string[];
}

/** One of several services behind one gateway. */
export interface GatewayService extends Pick<GatewayOptions, 'service' | 'upstream'> {
  /** The route table of the service: `app.router`. */
  readonly router: RouteTable;
  /** `/billing`: the gateway removes it, so that `/billing/x` is the service's `/x`. Default: paths are unchanged. */
  readonly prefix?: string | undefined;
}

/** A public route that a gateway's configuration can't express; no configuration is written then. */
export class GatewayError extends Error {
  /** Always `GatewayError`. */
  override readonly name = 'GatewayError';

  /**
   * @param route path of the route as registered: `/users/:id`
   * @param reason what the gateway can't express, and what to change
   */
  constructor(
    /** The path of the route as registered: `/users/:id`. */
    readonly route: string,
    /** The part that the gateway can't express, and how to change it. */
    readonly reason: string,
  ) {
    super(`${route}: ${reason}`);
  }
}

/** Address of one instance of a service. @internal */
export interface Upstream {
  /** A name, an IPv4 address, or an IPv6 address in brackets. */
  readonly host: string;
  readonly port: number;
}

/** A service, checked. @internal */
export interface SiteService {
  readonly name: string;
  readonly protocol: 'http' | 'https';
  readonly upstreams: readonly [Upstream, ...Upstream[]];
  /** `/billing`, or empty. */
  readonly prefix: string;
  readonly router: RouteTable;
}

/** The arguments of an exporter, checked and taken apart. @internal */
export interface Site extends Pick<ListenerOptions, 'tls' | 'include' | 'gateway' | 'namespace'> {
  /** In the order given. */
  readonly services: readonly [SiteService, ...SiteService[]];
  readonly listen: { readonly host: string; readonly port: number };
  /** Lower-case. */
  readonly hosts: readonly string[];
}

/** Arguments of an exporter: one table with all options, or a list of services with the options of the gateway. */
export type ExporterArguments<One = GatewayOptions, Many extends unknown[] = [options?: ListenerOptions | undefined]> =
  readonly [router: RouteTable, options: One] | readonly [services: readonly GatewayService[], ...Many];

/** Options of the gateways that listen by themselves: nginx, HAProxy and Caddy. @internal */
export const LISTENER: readonly (keyof ListenerOptions)[] = ['listen', 'hosts', 'tls', 'include'];

/**
 * Checks the arguments of an exporter.
 *
 * @param exporter its name, for messages: `toNginx`
 * @param known the options of its gateway
 * @throws {TypeError} for an option that is missing, unknown or malformed, and for two services with one name or one
 * prefix; the message has the value and the remedy
 * @internal
 */
export function checkArguments(exporter: string, known: typeof LISTENER, args: ExporterArguments): Site {
  const [first, options = {}] = args;
  const list = Array.isArray(first) ? (first as readonly GatewayService[]) : undefined;
  assertOptions(`${exporter}()`, options, list === undefined ? ['service', 'upstream', ...known] : known);
  const { service, upstream } = options as GatewayOptions;
  const [one, ...others] = (list ?? [{ router: first as RouteTable, service, upstream }]).map((given) => {
    assertOptions(`a service of ${exporter}()`, given, ['router', 'service', 'upstream', 'prefix']);
    return checkService(given);
  });
  if (one === undefined) throw new TypeError(`the list of services of ${exporter}() is empty; give at least one`);
  const services = [one, ...others] as const;
  assertDistinct('service', services.map(({ name }) => name));
  assertDistinct('prefix', services.map(({ prefix }) => prefix).filter(Boolean));
  return { services, ...checkListener(options) };
}

/** Reads the file that `include` names, for a gateway without an include of its own. @internal */
export function readIncluded(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/[^\S\n]+$/gm, '');
  } catch (error) {
    const message = `option "include" is ${JSON.stringify(file)}, which can't be read; give a file's path`;
    throw new TypeError(message, { cause: error });
  }
}

/** A DNS label (RFC 1123), as Kubernetes names namespaces. @internal */
export const LABEL: RegExp = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** A DNS subdomain, as Kubernetes names its objects and hosts (RFC 1123). @internal */
export const DNS_NAME: RegExp = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const HOST_NAME = /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}))*$/;
const LISTEN_ADDRESS = /^(\*|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/;
const UPSTREAM_HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])$/;
/** Characters that can be sent in one way only, so that a prefix has one spelling. */
const PREFIX = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)+$/;
/** No quote, brace, dollar, hash or backslash, which the configurations would read as their own. */
const FILE = /^[^\p{Cc}"'`{}$#\\;]+$/u;
const FILE_REMEDY = "a file's path, without quotes, braces and the like";

function checkService({ router, service, upstream, prefix }: GatewayService): SiteService {
  assertText('service', service, LABEL, 'a DNS label of at most 63 letters, digits and hyphens, such as "users"');
  if (typeof router !== 'object' || router === null || !Array.isArray(router.routes))
    throw new TypeError(`"router" of ${service} has no routes; give the router of an application`);
  if (prefix !== undefined)
    assertText('prefix', prefix, PREFIX, 'a path such as "/billing": letters, digits and -._ after slashes');
  const [first, ...others] = (Array.isArray(upstream) ? upstream : [upstream]).map(checkUpstream);
  if (first === undefined) throw wrong('upstream', upstream, 'at least one URL');
  const { protocol } = first;
  if (others.some((other) => other.protocol !== protocol))
    throw wrong('upstream', upstream, 'URLs that are all http or all https');
  const upstreams = [first, ...others] as const;
  assertDistinct('upstream', upstreams.map(({ host, port }) => `${host}:${port}`));
  return { name: service, protocol, upstreams, prefix: prefix ?? '', router };
}

function checkListener(options: ListenerOptions): Omit<Site, 'services'> {
  const { listen = '127.0.0.1:8080', hosts = [], tls, include, gateway, namespace } = options;
  if (gateway !== undefined) assertText('gateway', gateway, DNS_NAME, 'the name of a Gateway, such as "public"');
  if (namespace !== undefined) assertText('namespace', namespace, LABEL, 'the name of a namespace, such as "default"');
  if (include !== undefined) assertText('include', include, FILE, FILE_REMEDY);
  if (tls !== undefined) {
    assertOptions('tls', tls, ['certificate', 'key']);
    for (const name of ['certificate', 'key'] as const) assertText(`tls.${name}`, tls[name], FILE, FILE_REMEDY);
  }
  if (!Array.isArray(hosts)) throw wrong('hosts', hosts, 'a list of names such as ["users.example.com"]');
  const names = (hosts as readonly unknown[]).map((host) => {
    assertText('hosts', host, HOST_NAME, 'names such as "users.example.com", without a port or a wildcard');
    return host.toLowerCase();
  });
  return { listen: checkListen(listen), hosts: [...new Set(names)], tls, include, gateway, namespace };
}

function checkUpstream(upstream: unknown): Upstream & Pick<SiteService, 'protocol'> {
  const remedy = 'an http or https URL without a path, such as "http://127.0.0.1:8000"';
  if (typeof upstream !== 'string' || !/^https?:\/\/[^\s/?#@]+\/?$/i.test(upstream) || !URL.canParse(upstream))
    throw wrong('upstream', upstream, remedy);
  const { protocol, hostname, port } = new URL(upstream);
  if (!UPSTREAM_HOST.test(hostname) || port === '0') throw wrong('upstream', upstream, remedy);
  const [scheme, standard] = protocol === 'https:' ? (['https', 443] as const) : (['http', 80] as const);
  return { protocol: scheme, host: hostname, port: Number(port || standard) };
}

function checkListen(listen: string): { host: string; port: number } {
  const [, host, port] = (typeof listen === 'string' ? LISTEN_ADDRESS.exec(listen) : null) ?? [];
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw wrong('listen', listen, '"host:port", such as "127.0.0.1:8080" or "*:8080"');
  return { host, port: Number(port) };
}

function assertDistinct(name: string, values: readonly string[]): void {
  const twice = values.find((value, i) => values.indexOf(value) !== i);
  if (twice !== undefined) throw new TypeError(`option "${name}" is ${JSON.stringify(twice)} twice; give each its own`);
}

function assertText(name: string, value: unknown, pattern: RegExp, remedy: string): asserts value is string {
  if (typeof value !== 'string' || !pattern.test(value)) throw wrong(name, value, remedy);
}

function wrong(name: string, value: unknown, remedy: string): TypeError {
  const shown = value === undefined ? 'missing' : JSON.stringify(value);
  return new TypeError(`option "${name}" is ${shown}; give ${remedy}`);
}
