/** What Kong and an implementation of the Gateway API make of a request, after their documentation and source. */

import { HTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute';
import { parseAllDocuments } from 'yaml';

/** A plugin of a decK file. */
export interface KongPlugin {
  readonly name: string;
  readonly config: { readonly status_code?: number } & Readonly<
    Record<string, { readonly headers?: readonly string[]; readonly uri?: string }>
  >;
}

/** A route of a decK file. */
export interface KongRoute {
  readonly name: string;
  readonly methods: readonly string[];
  readonly paths: readonly string[];
  readonly hosts?: readonly string[];
  readonly strip_path: boolean;
  readonly preserve_host: boolean;
  readonly regex_priority: number;
  readonly tags: readonly string[];
  readonly plugins: readonly KongPlugin[];
}

/** A decK file. */
export interface KongFile {
  readonly _format_version: string;
  readonly services: readonly {
    readonly name: string;
    readonly protocol: string;
    readonly host: string;
    readonly port: number;
    readonly routes: readonly KongRoute[];
  }[];
  readonly upstreams?: readonly object[];
}

/** The engines of Kong's routers. */
export const ENGINES = ['pcre', 'rust'] as const;
export type Engine = (typeof ENGINES)[number];

/** `kong/tools/uri.lua`: reserved characters keep their escapes, all others lose them; bytes as latin1. */
export function normalizeForKong(path: string): string {
  const decoded = path.replace(/%([0-9A-Fa-f]{2})/g, (escape, hex: string) => {
    const char = String.fromCharCode(parseInt(hex, 16));
    return "!*'();:@&=+$,/?%#[]".includes(char) ? escape.toUpperCase() : char;
  });
  const kept: string[] = [];
  const segments = decoded.split('/').slice(1);
  for (const [i, segment] of segments.entries()) {
    const last = i === segments.length - 1;
    if (segment === '..') kept.pop();
    if (segment === '.' || segment === '..') {
      if (last) kept.push('');
    } else if (segment !== '' || last) kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

/** The service that Kong forwards a normalized path to, and the path that it gets: `users /users/7`; null for none. */
export function askKong({ services }: KongFile, method: string, path: string, engine: Engine): string | null {
  const matching = services
    .flatMap(({ name, routes }) =>
      routes.map((route) => ({
        service: name,
        route,
        groups: route.methods.includes(method) ? matchInKong(route.paths[0] ?? '', path, engine) : null,
      })),
    )
    .filter(({ groups }) => groups !== null)
    .sort((a, b) => b.route.regex_priority - a.route.regex_priority);
  const [best] = matching;
  if (best === undefined || best.route.plugins.some(({ name }) => name === 'request-termination')) return null;
  const rewritten = best.route.plugins.some(({ config }) => config['replace']?.uri === '$(uri_captures[1])');
  return `${best.service} ${rewritten ? best.groups?.[1] : path}`;
}

function matchInKong(pattern: string, path: string, engine: Engine): RegExpExecArray | null {
  const source = pattern.slice(1);
  if (engine === 'pcre') return new RegExp(`^${Buffer.from(source, 'utf8').toString('latin1')}`).exec(path);
  // Rust's engine reads text, so a path that is not UTF-8 does not get as far.
  const bytes = Buffer.from(path, 'latin1');
  return Buffer.from(bytes.toString(), 'utf8').equals(bytes) ? new RegExp(`^${source}`, 'u')
    .exec(bytes.toString()) : null;
}

/** The manifests in the YAML of `toGatewayApi`, each checked against the schema of its resource. */
export function parseHttpRoutes(yaml: string): HTTPRoute[] {
  return parseAllDocuments(yaml).map((document) => {
    const manifest = new HTTPRoute(document.toJS() as ConstructorParameters<typeof HTTPRoute>[0]);
    manifest.validate();
    return manifest;
  });
}

/** The Service that an implementation forwards a path to, and the path that it gets; null for none. */
export function askHttpRoutes(manifests: readonly HTTPRoute[], method: string, path: string): string | null {
  for (const { spec } of manifests) {
    for (const { matches, filters, backendRefs } of spec?.rules ?? []) {
      const isMatch = matches?.some(
        ({ method: name, path: { type, value = '' } = {} }) =>
          name === method && (type === 'Exact' ? value === path : new RegExp(`^(?:${value})$`).test(path)),
      );
      if (isMatch === true)
        return `${backendRefs?.[0]?.name} ${filters?.find(({ type }) => type === 'URLRewrite')?.urlRewrite?.path?.replaceFullPath ?? path}`;
    }
  }
  return null;
}
