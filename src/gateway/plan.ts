/*
 * What every exporter begins with: the services of a site, each with what of it is public, and the certainty that no
 * two of them claim one path.
 */

import { GatewayError } from './error.js';
import { checkArguments, type ExporterArguments, type Site, type SiteService } from './exporter-options.js';
import { isBelow, pathsOverlap } from './overlap.js';
import { createSurface, type Surface } from './surface.js';

/** A service and its surface. */
export interface PlannedService extends SiteService {
  readonly surface: Surface;
  /** Prefixes of other services that begin with this one's: what is below them is not this one's. */
  readonly inner: readonly string[];
}

/** A site, ready to be written. */
export interface Plan extends Site {
  readonly services: readonly [PlannedService, ...PlannedService[]];
}

/**
 * Plans a configuration.
 *
 * @throws {TypeError} for wrong options
 * @throws {GatewayError} for a public CONNECT route, and for two services that claim one path
 */
export function createPlan(exporter: string, args: ExporterArguments): Plan {
  const site = checkArguments(exporter, args);
  const prefixes = site.services.map(({ prefix }) => prefix);
  const constraints = new Map();
  const [first, ...others] = site.services;
  const plan = (service: SiteService): PlannedService => ({
    ...service,
    surface: createSurface(service.router, constraints),
    inner: prefixes.filter((prefix) => service.prefix !== '' && prefix.startsWith(`${service.prefix}/`)),
  });
  const services = [plan(first), ...others.map(plan)] as const;
  const [prefixed, bare] = [
    services.filter(({ prefix }) => prefix !== ''),
    services.filter(({ prefix }) => prefix === ''),
  ];
  for (const service of bare) assertFree(service, bare, prefixed);
  return { ...site, services };
}

/** The head of a configuration. */
export function formatHeader({ services }: Plan): string {
  const counts = services.map((service) => `${titleOf(service)}: ${service.surface.open} of ${service.surface.total}`);
  return `# Public routes of ${counts.join(', ')}.
# Written by Postern; change the routes and write it anew. A service checks its query parameters itself.`;
}

/** `billing below /billing` */
export function titleOf({ name, prefix }: PlannedService): string {
  return prefix === '' ? name : `${name} below ${prefix}`;
}

/**
 * Two routes of different services clash when one is public and some path is of both. What lies below a prefix is the
 * prefixed service's, so no other may have public paths there.
 */
function assertFree(one: PlannedService, bare: readonly PlannedService[], prefixed: readonly PlannedService[]): void {
  for (const { path, segments, routes } of one.surface.leaves) {
    const route = routes.find(({ public: open }) => open);
    if (route === undefined) continue;
    const claim = `${route.method} ${path} of ${one.name} is public and shares paths with`;
    for (const other of bare) {
      const twin =
        other === one ? undefined : other.surface.patterns.find((each) => pathsOverlap(segments, each.segments));
      if (twin === undefined) continue;
      const { method, public: open } = twin.routes.find((each) => each.public) ?? twin.routes[0] ?? route;
      throw new GatewayError(
        path,
        `${claim} ${method} ${twin.path} of ${other.name}, which is ${open ? 'public, too' : 'private'}; give one of the services a prefix, or change a path`,
      );
    }
    const owner = prefixed.find(({ prefix }) => isBelow(segments, prefix));
    if (owner === undefined) continue;
    const [other] = (owner.surface.leaves[0] ?? owner.surface.patterns[0])?.routes ?? [];
    const example = other === undefined ? '' : `, whose ${other.method} ${other.path} is below it`;
    throw new GatewayError(
      path,
      `${claim} ${owner.prefix}, the prefix of ${owner.name}${example}; change the path or the prefix`,
    );
  }
}
