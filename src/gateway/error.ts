/* The error for what a gateway can't be told. */

/** A route that a gateway's configuration can't express; nothing of the configuration is given out then. */
export class GatewayError extends Error {
  /** The path of the route as registered: `/users/:id`. */
  readonly route: string;
  /** Which gateway can't do what, and what to change. */
  readonly reason: string;

  constructor(route: string, reason: string) {
    super(`${route}: ${reason}`);
    this.name = 'GatewayError';
    this.route = route;
    this.reason = reason;
  }
}
