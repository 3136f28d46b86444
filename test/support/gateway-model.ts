/** What Kong and an implementation of the Gateway API make of a request, after their documentation and source. */

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
  readonly plugins?: readonly { readonly name: string; readonly config: { readonly status_code?: number } }[];
}

/** A decK file. */
export interface KongFile {
  readonly _format_version: string;
  readonly services: readonly { readonly name: string; readonly protocol: string; readonly host: string; readonly port: number; readonly routes: readonly KongRoute[] }[];
}

/** One match of an HTTPRoute. */
export interface HttpRouteMatch {
  readonly method: string;
  readonly type: string;
  readonly value: string;
}

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

/** As Kong sends a normalized path on. */
export function escapeForUpstream(path: string): string {
  return path.replace(/[^!#$&'()*+,/:;=?@[\]A-Za-z\d\-_.~%]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
}

/** Whether Kong passes on a request, with the one or the other engine. */
export function kongPasses(routes: readonly KongRoute[], method: string, path: string, engine: 'pcre' | 'rust'): boolean {
  const matching = routes.filter((route) => route.methods.includes(method) && route.paths.some((pattern) => matchesInKong(pattern.slice(1), path, engine)));
  const best = Math.max(...matching.map((route) => route.regex_priority));
  const chosen = matching.filter((route) => route.regex_priority === best);
  const passing = chosen.filter((route) => route.plugins?.some(({ name }) => name === 'request-termination') !== true);
  if (passing.length > 0 && passing.length < chosen.length) throw new Error(`${method} ${path} matches ${chosen.map((route) => route.name).join(', ')}`);
  return passing.length > 0;
}

/** The matches of all rules in the YAML of {@link toGatewayApi}. */
export function parseHttpRoutes(yaml: string): HttpRouteMatch[][][] {
  const unquote = (text: string): string => (text.startsWith("'") ? text.slice(1, -1).replaceAll("''", "'") : text);
  return yaml.split(/^---$/m).map((manifest) =>
    manifest
      .split(/^ {4}- matches:$/m)
      .slice(1)
      .map((rule) => [...rule.matchAll(/- method: (\w+)\n +path:\n +type: (\w+)\n +value: (.*)\n/g)].map(([, method = '', type = '', value = '']) => ({ method, type, value: unquote(value) }))),
  );
}

/** Whether any match takes a request; `Exact` compares, an expression has to match as a whole. */
export function httpRoutePasses(matches: readonly HttpRouteMatch[], method: string, path: string): boolean {
  return matches.some((match) => match.method === method && (match.type === 'Exact' ? match.value === path : new RegExp(`^(?:${match.value})$`, 's').test(path)));
}

function matchesInKong(pattern: string, path: string, engine: 'pcre' | 'rust'): boolean {
  // Rust's engine reads text, so what is no UTF-8 never gets as far.
  if (engine === 'rust') {
    const bytes = Buffer.from(path, 'latin1');
    const text = bytes.toString('utf8');
    return Buffer.from(text, 'utf8').equals(bytes) && new RegExp(`^${pattern}`, 'u').test(text);
  }
  const bytes = new RegExp(`^${Buffer.from(pattern, 'utf8').toString('latin1')}`);
  // `$` also matches before a last line feed.
  return bytes.test(path) || (path.endsWith('\n') && bytes.test(path.slice(0, -1)));
}
