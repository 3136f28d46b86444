/**
 * Names that one nginx knows things by. Maps and upstreams are for all servers of an nginx, so their names have a tag
 * of the listener: another configuration beside this one has another.
 */

import { createHash } from 'node:crypto';
import type { Plan, PlannedService } from './plan.js';

/** As long as a variable's name may be for the hash of them that nginx has unless told. */
const MAX_LENGTH = 46;
const MAX_METHOD = 'version_control'.length;

/** Names of one configuration. */
export class NginxNames {
  readonly #tag: string;
  readonly #services = new Map<string, string>();

  constructor({ services, listen, hosts }: Plan) {
    const digest = createHash('sha256')
      .update(JSON.stringify([listen, hosts]))
      .digest('hex');
    this.#tag = BigInt(`0x${digest}`).toString(36).slice(0, 6);
    const room = MAX_LENGTH - `postern__${this.#tag}_`.length - MAX_METHOD;
    for (const [i, { name }] of services.entries()) {
      const text = name.replaceAll('-', '_');
      this.#services.set(name, text.length > room ? `${text.slice(0, room - 4)}_${i + 1}` : text);
    }
  }

  /** The variable that says what a service's routes make of a method: `$postern_users_get_k3v9qa`. */
  of({ name }: PlannedService, method: string): string {
    const what = method.toLowerCase().replaceAll('-', '_');
    return `$postern_${this.#services.get(name) ?? ''}_${what}_${this.#tag}`;
  }

  upstreamOf({ name }: PlannedService): string {
    return `postern_${name}_${this.#tag}`;
  }
}
