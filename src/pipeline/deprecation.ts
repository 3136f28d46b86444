/*
 * Tells clients of a route that it is on its way out, with every reply: `Deprecation` (RFC 9745), `Sunset` (RFC 8594),
 * and a `Link` in addition to others.
 */

import { Date } from '../base/clock.js';
import { indexOfHeader, type Outgoing } from '../http/reply.js';
import type { Deprecation } from '../endpoint/route-options.js';

/** A reply of a route, errors too, with the headers of its deprecation. A `Sunset` that the reply has itself stays. */
export function announceDeprecation(outgoing: Outgoing, deprecated: Deprecation): Outgoing {
  const headers = [...outgoing.headers];
  for (const [name, value] of headersOf(deprecated)) {
    const index = indexOfHeader(headers, name);
    if (index === -1) headers.push(name, value);
    else if (name === 'link') headers[index + 1] = [headers[index + 1] ?? [], value].flat().join(', ');
  }
  return { ...outgoing, headers };
}

function headersOf({ at, sunset, link }: Deprecation): [name: string, value: string][] {
  const headers: [name: string, value: string][] = [];
  if (at !== undefined) headers.push(['deprecation', `@${Math.floor(new Date(at).getTime() / 1000)}`]);
  if (sunset !== undefined) headers.push(['sunset', new Date(sunset).toUTCString()]);
  if (link !== undefined) headers.push(['link', `<${new URL(link).href}>; rel="deprecation"`]);
  return headers;
}
