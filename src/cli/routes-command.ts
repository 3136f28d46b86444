/* `postern routes`: the route table of an application, or what changed in its public part. */

import type { RouteInfo } from '../routing/router.js';
import { defineCommand, flag, parsed, savedBy, type Command, type CommandResult } from './command.js';
import { isRouteTable, routeKeyOf, loadApp } from './module.js';
import { paint, toJson, toTable, toVisible } from './output.js';

const usage = `Usage: postern routes MODULE [--json] [--check FILE]

Prints every route of the application that MODULE exports as its default.

  --json         as JSON, to be saved for --check
  --check FILE   compares with a saved --json: prints what became public,
                 stopped being public or changed its query parameters, and
                 exits with 1; prints nothing if nothing did
`;

const OPTIONS = { json: flag, check: parsed('', savedBy('routes MODULE --json', 'saved route table', isRouteTable)) };

export const routes: Command = defineCommand(usage, 'MODULE', OPTIONS, async ({ json, check: saved }, file) => {
  const { routes } = (await loadApp(file)).router;
  if (saved === undefined) return { text: json ? toJson(routes) : formatRoutes(routes) };
  return compareRoutes(saved, routes, json);
});

function formatRoutes(routes: readonly RouteInfo[]): string {
  const rows = routes.map(({ method, path, pattern, public: isPublic, params }) => {
    return [method, path, pattern, isPublic ? 'public' : 'private', describeParams(params)];
  });
  const [head, ...lines] = toTable([['METHOD', 'PATH', 'PATTERN', 'SCOPE', 'QUERY'], ...rows]);
  return [head, ...lines.map((line, i) => (routes[i]?.public === true ? paint('green', line) : line)), ''].join('\n');
}

/**
 * Compares routes by method and pattern; the order of query parameters does not matter.
 *
 * @returns the public routes that changed, in order of registration
 */
function compareRoutes(before: readonly RouteInfo[], after: readonly RouteInfo[], json: boolean): CommandResult {
  const old = publicRoutes(before);
  const now = publicRoutes(after);
  const became_public = [...now.values()].filter((route) => !old.has(routeKeyOf(route)));
  const stopped_being_public = [...old.values()].filter((route) => !now.has(routeKeyOf(route)));
  const changed_params = [...now].flatMap(([key, { method, path, pattern, params }]) => {
    const was = old.get(key);
    if (was === undefined || sorted(was.params) === sorted(params)) return [];
    return { method, path, pattern, before: was.params, after: params };
  });
  const lines = [
    ...became_public.map((route) =>
      paint('green', `+ ${describeRow(route)} became public (query: ${describeParams(route.params)})`),
    ),
    ...stopped_being_public.map((route) => paint('red', `- ${describeRow(route)} stopped being public`)),
    ...changed_params.map((route) => {
      const params = `${describeParams(route.before)} → ${describeParams(route.after)}`;
      return paint('yellow', `~ ${describeRow(route)} changed its parameters: ${params}`);
    }),
  ];
  const changes = { became_public, stopped_being_public, changed_params };
  return { text: json ? toJson(changes) : lines.map((line) => `${line}\n`).join(''), finding: lines.length > 0 };
}

function describeRow({ method, path, pattern }: Pick<RouteInfo, 'method' | 'path' | 'pattern'>): string {
  return toVisible(`${method} ${path} (${pattern})`);
}

/** Allowed query parameters in words: `any`, `none`, or their names. */
function describeParams(params: RouteInfo['params']): string {
  if (params === null) return 'any';
  return params.length === 0 ? 'none' : toVisible(params.join(', '));
}

function publicRoutes(routes: readonly RouteInfo[]): Map<string, RouteInfo> {
  return new Map(routes.filter((route) => route.public).map((route) => [routeKeyOf(route), route]));
}

function sorted(params: RouteInfo['params']): string {
  return JSON.stringify(params && [...new Set(params)].sort());
}
