/* Reads the URL of a service, as `ping` and `live` take it. */

import { isServiceName } from '../client/settings.js';
import { UsageError } from './command.js';

/** A service, and what its own paths go behind: `http://mesh:8000/users/ping/` is `users` at `http://mesh:8000`. */
export interface Target {
  readonly service: string;
  readonly base: string;
}

/** How many levels of a mesh are asked for unless told. */
export const DEFAULT_DEPTH = '3';

/** @throws {UsageError} for a URL that names no service, such as a bare origin */
export function parseTarget(text: string): Target {
  const remedy = 'give http://host:port/<service>/';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new UsageError(`${JSON.stringify(text)} is no http or https URL; ${remedy}`);
  if (url.username !== '' || url.password !== '')
    throw new UsageError(`the URL has credentials, which are not sent; ${remedy}`);
  if (url.search !== '' || url.hash !== '')
    throw new UsageError(`${JSON.stringify(text)} has a query or fragment; ${remedy}, and the depth as --depth`);
  const segments = url.pathname.split('/').filter((segment) => segment !== '');
  // A service may be called ping as well.
  if (segments.length > 1 && segments.at(-1) === 'ping') segments.pop();
  const service = segments.pop();
  if (!isServiceName(service)) throw new UsageError(`${JSON.stringify(text)} names no service; ${remedy}`);
  return { service, base: [url.origin, ...segments].join('/') };
}
