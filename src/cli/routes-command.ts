/* `postern routes`: the route table of an application, or what changed in its public part. */

import type { RouteInfo } from '../routing/router.js';
import { parseCommand, type Outcome, type Command } from './command.js';
import { loadApp, readRoutes } from './module.js';
import { paint, toJson, toTable } from './output.js';
import { compareRoutes, describeParams, formatChanges } from './route-changes.js';
import { readSaved } from './saved.js';

const usage = `Usage: postern routes MODULE [--json] [--check FILE]

Prints every route of the application that MODULE exports as its default.

  --json         as JSON, to be saved for --check
  --check FILE   compares with a saved --json: prints what became public,
                 stopped being public or changed its query parameters, and
                 exits with 1; prints nothing if nothing did
`;

export const routes: Command = { usage, run };

/** @throws {Error} when the module or the file can't be used */
async function run(args: string[]): Promise<Outcome> {
  const { values, positionals } = parseCommand(args, { json: { type: 'boolean' }, check: { type: 'string' } }, [
    'MODULE',
  ]);
  const { json = false, check } = values;
  const saved =
    check === undefined ? undefined : readSaved(check, readRoutes, 'saved route table', 'routes MODULE --json');
  const { routes } = (await loadApp(positionals[0] ?? '')).router;
  if (saved === undefined) return { text: json ? toJson(routes) : formatTable(routes) };
  const changes = compareRoutes(saved, routes);
  const finding = Object.values(changes).some((list) => list.length > 0);
  return { text: json ? toJson(changes) : formatChanges(changes), finding };
}

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
