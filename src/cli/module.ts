/*
 * Loads a user's module for its application, and takes from it no more than its name and its routes.
 *
 * The application is known by its shape, so that one of another copy of the package will do.
 */

import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isRecord } from '../base/options-check.js';
import type { RouteInfo } from '../routing/router.js';
import { messageOf } from './output.js';

/** Members of an application that the command reads. */
export interface LoadedApp {
  readonly name: string;
  readonly router: { readonly routes: readonly RouteInfo[] };
  /** The application itself, for commands that read more of it. */
  readonly app: object;
}

/**
 * Imports a module.
 *
 * @param file relative to the working directory
 * @throws {Error} when it can't be imported, or its default export is not an application
 */
export async function loadApp(file: string): Promise<LoadedApp> {
  const app = appOf(await importModule(file));
  if (app === undefined) throw new Error(`${file} has no Postern app as its default export`);
  return app;
}

/**
 * Imports a module for an application that can be watched from outside.
 *
 * @throws {Error} also when it has no monitoring endpoints
 */
export async function loadMonitoredApp(file: string): Promise<LoadedApp> {
  const app = await loadApp(file);
  if (app.router.routes.some(({ path }) => path === `/${app.name}/health/`)) return app;
  throw new Error(`${app.name} has no monitoring endpoints; leave attachMonitorEndpoints as it is`);
}

/** Rows of a route table from anyone, their known fields; undefined for anything else, and for one route twice. */
export function readRoutes(value: unknown): RouteInfo[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const routes = new Map<string, RouteInfo>();
  for (const row of value as unknown[]) {
    const route = readRoute(row);
    if (route === undefined) return undefined;
    routes.set(`${route.method} ${route.pattern}`, route);
  }
  return routes.size === value.length ? [...routes.values()] : undefined;
}

async function importModule(file: string): Promise<unknown> {
  // A module that listens when it is imported would log where, which is of no interest here.
  process.env['LOG_LEVEL'] ??= 'warn';
  try {
    return await import(pathToFileURL(resolve(file)).href);
  } catch (error) {
    const reason = messageOf(error).replace(` imported from ${fileURLToPath(import.meta.url)}`, '');
    throw new Error(`${file} can't be loaded: ${reason}${remedyOf(file, error)}`, { cause: error });
  }
}

/** Adds what messages of Node.js lack: the line of a syntax error, and what to do about TypeScript. */
function remedyOf(file: string, error: unknown): string {
  if (error instanceof SyntaxError) {
    // Only an error that ends a process is printed with its line.
    const { stderr } = spawnSync(process.execPath, ['--check', resolve(file)], { encoding: 'utf8' });
    const [, line] = /^.+:(\d+)\r?$/m.exec(stderr) ?? [];
    return line === undefined ? '' : ` (line ${line})`;
  }
  const isTypeScript = error instanceof Error && /^Unknown file extension "\.[cm]?tsx?"/.test(error.message);
  const { version } = process;
  return isTypeScript
    ? `; Node.js ${version} does not read TypeScript: use 22.18 or later, or a loader: NODE_OPTIONS="--import tsx"`
    : '';
}

/** Compiled CommonJS has its default export one level further down. */
function appOf(namespace: unknown): LoadedApp | undefined {
  const exported = propertyOf(namespace, 'default');
  for (const candidate of [exported, propertyOf(exported, 'default')]) {
    const name = propertyOf(candidate, 'name');
    const routes = readRoutes(propertyOf(propertyOf(candidate, 'router'), 'routes'));
    if (isRecord(candidate) && typeof name === 'string' && routes !== undefined)
      return { name, router: { routes }, app: candidate };
  }
  return undefined;
}

function propertyOf(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}

function readRoute(value: unknown): RouteInfo | undefined {
  if (!isRecord(value)) return undefined;
  const { method, path, pattern, public: open, params, meta } = value;
  if (
    typeof method !== 'string' ||
    typeof path !== 'string' ||
    typeof pattern !== 'string' ||
    typeof open !== 'boolean'
  )
    return undefined;
  if (params !== null && !isStrings(params)) return undefined;
  return { method, path, pattern, public: open, params, ...(isRecord(meta) ? { meta } : {}) };
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}
