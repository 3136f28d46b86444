/* `postern routes`: the route table of an application, or what changed in its public part. */

import type { RouteInfo } from '../routing/router.js';
import { defineCommand, flag, savedFile, type Command } from './command.js';
import { loadApp, readRoutes } from './module.js';
import { paint, toJson, toTable, toVisible } from './output.js';

const usage = `Usage: postern routes MODULE [--json] [--check FILE]

Prints every route of the application that MODULE exports as its default.

  --json         as JSON, to be saved for --check
  --check FILE   compares with a saved --json: prints what became public,
                 stopped being public or changed its query parameters, and
                 exits with 1; prints nothing if nothing did
`;

const OPTIONS = { json: flag, check: savedFile(readRoutes, 'saved route table', 'routes MODULE --json') };

export const routes: Command = defineCommand(usage, 'MODULE', OPTIONS, async ({ json, check: saved }, file) => {
  const { routes } = (await loadApp(file)).router;
  if (saved === undefined) return { text: json ? toJson(routes) : formatTable(routes) };
  const changes = compareRoutes(saved, routes);
  const finding = Object.values(changes).some((list) => list.length > 0);
  return { text: json ? toJson(changes) : formatChanges(changes), finding };
});

function formatTable(routes: readonly RouteInfo[]): string {
  const rows = routes.map(({ method, path, pattern, public: open, params }) => [
    method,
    path,
    pattern,
    open ? 'public' : 'private',
    describeParams(params),
  ]);
  const [head, ...lines] = toTable([['METHOD', 'PATH', 'PATTERN', 'SCOPE', 'QUERY'], ...rows]);
  return [head, ...lines.map((line, i) => (routes[i]?.public === true ? paint('green', line) : line)), ''].join('\n');
}

/** Differences between two lists of routes, in order of registration. */
export interface RouteChanges {
  readonly became_public: readonly RouteInfo[];
  /** The routes as they were before. */
  readonly stopped_being_public: readonly RouteInfo[];
  readonly changed_params: readonly ParamsChange[];
}

/** A public route whose allowed query parameters are others than before; null stands for any. */
export interface ParamsChange {
  readonly method: string;
  readonly path: string;
  readonly pattern: string;
  readonly before: readonly string[] | null;
  readonly after: readonly string[] | null;
}

/**
 * Compares routes by method and pattern; a parameter of the path may be renamed, and parameters of the query
 * reordered.
 */
export function compareRoutes(before: readonly RouteInfo[], after: readonly RouteInfo[]): RouteChanges {
  const old = publicRoutes(before);
  const now = publicRoutes(after);
  const changed_params: ParamsChange[] = [];
  for (const [key, { method, path, pattern, params }] of now) {
    const was = old.get(key);
    if (was !== undefined && !sameParams(was.params, params))
      changed_params.push({ method, path, pattern, before: was.params, after: params });
  }
  return { became_public: missingFrom(old, now), stopped_being_public: missingFrom(now, old), changed_params };
}

/** One line for each change. */
export function formatChanges({ became_public, stopped_being_public, changed_params }: RouteChanges): string {
  const lines = [
    ...became_public.map((route) =>
      paint('green', `+ ${describe(route)} became public (query: ${toVisible(describeParams(route.params))})`),
    ),
    ...stopped_being_public.map((route) => paint('red', `- ${describe(route)} stopped being public`)),
    ...changed_params.map((route) =>
      paint(
        'yellow',
        `~ ${describe(route)} changed its parameters: ${toVisible(`${describeParams(route.before)} → ${describeParams(route.after)}`)}`,
      ),
    ),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** Allowed query parameters in words: `any`, `none`, or their names. */
export function describeParams(params: readonly string[] | null): string {
  if (params === null) return 'any';
  return params.length === 0 ? 'none' : params.join(', ');
}

function publicRoutes(routes: readonly RouteInfo[]): Map<string, RouteInfo> {
  return new Map(routes.filter((route) => route.public).map((route) => [`${route.method} ${route.pattern}`, route]));
}

function missingFrom(there: ReadonlyMap<string, RouteInfo>, routes: ReadonlyMap<string, RouteInfo>): RouteInfo[] {
  return [...routes].filter(([key]) => !there.has(key)).map(([, route]) => route);
}

function sameParams(a: readonly string[] | null, b: readonly string[] | null): boolean {
  const [one, other] = [a, b].map((params) => JSON.stringify(params === null ? null : [...new Set(params)].sort()));
  return one === other;
}

function describe({
  method,
  path,
  pattern,
}: {
  readonly method: string;
  readonly path: string;
  readonly pattern: string;
}): string {
  return toVisible(`${method} ${path} (${pattern})`);
}
