/*
 * Names of maps and upstreams, which all servers of an nginx share. Each has a tag that is made of the listener and its
 * hosts, so that two configurations beside each other don't share names.
 */

import { createHash } from 'node:crypto';
import type { Plan, PlannedService } from './plan.js';

/** Most characters of a variable's name that fit into nginx's hash of variables as it is by default. */
const MAX_LENGTH = 46;
const MAX_METHOD = 'version_control'.length;

/** The name of what a service has, such as what its routes make of a method: `postern_users_get_4be9a1f2`. */
export type NginxName = (service: PlannedService, what: string) => string;

/** Gives the names of one configuration. */
export function createNames({ services, listen, hosts }: Plan): NginxName {
  const digest = createHash('sha256').update(JSON.stringify([listen, hosts]));
  const tag = digest.digest('hex').slice(0, 8);
  const room = MAX_LENGTH - `postern__${tag}_`.length - MAX_METHOD;
  return ({ name }, what) => {
    const index = services.findIndex((service) => service.name === name);
    const own = name.length > room ? `${name.slice(0, room - 4)}_${index + 1}` : name;
    return `postern_${own}_${what.toLowerCase()}_${tag}`.replaceAll('-', '_');
  };
}
