/**
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
  assertNoClash(services.filter(({ prefix }) => prefix === ''));
  assertOutside(services);
  return { ...site, services };
}

/** Lines at the head of a configuration. */
export function headerLines({ services }: Plan): string[] {
  const one = services.length === 1;
  const counts = services.map(
    ({ name, prefix, surface: { open, total } }) =>
      `${name}${prefix === '' ? '' : ` below ${prefix}`}: ${open} of ${total}`,
  );
  return [
    `Public routes of the ${one ? 'service' : 'services'} ${counts.join(', ')}.`,
    `Written by Postern from ${one ? 'its route table' : 'their route tables'}; change the routes and write it anew.`,
    `Query parameters are checked by the ${one ? 'service itself' : 'services themselves'}.`,
  ];
}

/** Two routes of different services clash when one is public and some path is of both. */
function assertNoClash(services: readonly PlannedService[]): void {
  for (const one of services) {
    for (const leaf of one.surface.leaves) {
      const route = leaf.routes.find(({ public: open }) => open);
      if (route === undefined) continue;
      for (const other of services) {
        if (other === one) continue;
        const twin = other.surface.patterns.find(({ segments }) => pathsOverlap(leaf.segments, segments));
        if (twin === undefined) continue;
        const { method, public: open } = twin.routes.find((each) => each.public) ?? twin.routes[0] ?? route;
        throw new GatewayError(
          leaf.path,
          `${route.method} ${leaf.path} of ${one.name} is public and shares paths with ${method} ${twin.path} of ${other.name}, which is ${open ? 'public, too' : 'private'}; give one of the services a prefix, or change a path`,
        );
      }
    }
  }
}

/** What lies below a prefix is the prefixed service's, so no other may have public paths there. */
function assertOutside(services: readonly PlannedService[]): void {
  for (const { name, surface } of services.filter((service) => service.prefix === '')) {
    for (const { path, segments, opens, routes } of surface.leaves) {
      const owner = services.find(({ prefix }) => prefix !== '' && isBelow(segments, prefix));
      if (opens.size === 0 || owner === undefined) continue;
      const { method = '' } = routes.find(({ public: open }) => open) ?? {};
      const [other] = (owner.surface.leaves[0] ?? owner.surface.patterns[0])?.routes ?? [];
      const example = other === undefined ? '' : `, whose ${other.method} ${other.path} is below it`;
      throw new GatewayError(
        path,
        `${method} ${path} of ${name} is public and shares paths with ${owner.prefix}, the prefix of ${owner.name}${example}; change the path or the prefix`,
      );
    }
  }
}
