/** `postern routes`: the route table of an application, or what changed in its public part. */

import { readFileSync } from 'node:fs';
import type { RouteInfo } from '../routing/router.js';
import { parseCommand, type Outcome } from './command.js';
import { loadApp, readRoutes } from './module.js';
import { messageOf, paint, toJson, toVisible } from './output.js';
import { compareRoutes, describeParams, formatChanges } from './route-changes.js';

export const usage: string = `Usage: postern routes MODULE [--json] [--check FILE]

Prints every route of the application that MODULE exports as its default.

  --json         as JSON, to be saved for --check
  --check FILE   compares with a saved --json: prints what became public,
                 stopped being public or changed its query parameters, and
                 exits with 1; prints nothing if nothing did
`;

/** @throws {Error} when the module or the file can't be used */
export async function run(args: string[]): Promise<Outcome> {
  const { values, positionals } = parseCommand(args, { json: { type: 'boolean' }, check: { type: 'string' } }, [
    'MODULE',
  ]);
  const { json = false, check } = values;
  const saved = check === undefined ? undefined : readSaved(check);
  const { routes } = (await loadApp(positionals[0] ?? '')).router;
  if (saved === undefined) return { text: json ? toJson(routes) : formatTable(routes), exitCode: 0 };
  const changes = compareRoutes(saved, routes);
  const differs = Object.values(changes).some((list) => list.length > 0);
  return { text: json ? toJson(changes) : formatChanges(changes), exitCode: differs ? 1 : 0 };
}

function readSaved(file: string): RouteInfo[] {
  let routes: RouteInfo[] | undefined;
  try {
    routes = readRoutes(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new Error(`${file} can't be read: ${messageOf(error)}`, { cause: error });
  }
  if (routes === undefined)
    throw new Error(`${file} is no saved route table; make one with postern routes MODULE --json`);
  return routes;
}

function formatTable(routes: readonly RouteInfo[]): string {
  const rows = routes.map(({ method, path, pattern, public: open, params }) =>
    [method, path, pattern, open ? 'public' : 'private', describeParams(params)].map(toVisible),
  );
  const table = [['METHOD', 'PATH', 'PATTERN', 'SCOPE', 'QUERY'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const lines = table.map((row) => {
    const line = row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
    return row[3] === 'public' ? paint('green', line) : line;
  });
  return `${lines.join('\n')}\n`;
}
