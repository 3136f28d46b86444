/* The error of the exporters for a route table that a gateway can't express. */

/** A public route that a gateway's configuration can't express; no configuration is written then. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';

  /**
   * @param route path of the route as registered: `/users/:id`
   * @param reason what the gateway can't express, and what to change
   */
  constructor(
    readonly route: string,
    readonly reason: string,
  ) {
    super(`${route}: ${reason}`);
  }
}
