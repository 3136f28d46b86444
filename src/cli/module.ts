/*
 * Loads a user's module for its application. The application is known by its shape, so that one of another copy of the
 * package will do.
 */

import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { NamedValue } from '../base/error-codes.js';
import { isRecord } from '../base/options-check.js';
import type { Registry } from '../metrics/registry.js';
import type { Settings } from '../mesh/settings.js';
import type { OpenApiSource } from '../openapi/document.js';
import type { RouteInfo, Router } from '../routing/router.js';
import { messageOf } from './output.js';

/** An application. Its name and its routes are checked; an application of another copy may lack the other members. */
export interface LoadedApp extends OpenApiSource {
  readonly errorCodes?: readonly NamedValue[];
  readonly metrics?: Pick<Registry, 'get'>;
  readonly settings?: Settings;
  readonly router: OpenApiSource['router'] & Partial<Pick<Router, 'entries'>>;
}

/**
 * Imports a module.
 *
 * @param file relative to the working directory
 * @throws {Error} when it can't be imported, or its default export is not an application
 */
export async function loadApp(file: string): Promise<LoadedApp> {
  const exports = await importModule(file);
  const { default: exported } = exports;
  // Compiled CommonJS has its default export one level further down.
  const app = [exported, isRecord(exported) ? exported['default'] : undefined].find(isApp);
  if (app !== undefined) return app;
  const name = Object.keys(exports).find((each) => isApp(exports[each])) ?? 'app';
  throw new Error(`${file} has no Postern app as its default export; write: export default ${name}`);
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

/** Whether a value is a route table, in which each route is there once. */
export function isRouteTable(value: unknown): value is RouteInfo[] {
  return Array.isArray(value) && value.every(isRoute) && new Set(value.map(routeKeyOf)).size === value.length;
}

/** Method and pattern: equal for routes that differ only in the names of their parameters. */
export function routeKeyOf({ method, pattern }: Pick<RouteInfo, 'method' | 'pattern'>): string {
  return `${method} ${pattern}`;
}

async function importModule(file: string): Promise<Record<string, unknown>> {
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
  if (!/^Unknown file extension "\.[cm]?tsx?"/.test(messageOf(error))) return '';
  const { version } = process;
  return `; Node.js ${version} does not read TypeScript: use 22.18 or later, or a loader: NODE_OPTIONS="--import tsx"`;
}

function isApp(value: unknown): value is LoadedApp {
  if (!isRecord(value)) return false;
  const { name, router } = value;
  return typeof name === 'string' && isRecord(router) && isRouteTable(router['routes']);
}

function isRoute(value: unknown): value is RouteInfo {
  if (!isRecord(value)) return false;
  const { method, path, pattern, public: isPublic, params } = value;
  return isStrings([method, path, pattern]) && typeof isPublic === 'boolean' && (params === null || isStrings(params));
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}
