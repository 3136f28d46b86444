/* The error for what an OpenAPI document can't say. */

/** A route that the document can't describe; nothing of the document is given out then. */
export class OpenApiError extends Error {
  /** The path of the route as registered: `/users/:id`. */
  readonly route: string;
  /** What can't be said, and what to change. */
  readonly reason: string;

  constructor(route: string, reason: string, options?: ErrorOptions) {
    super(`${route}: ${reason}`, options);
    this.name = 'OpenApiError';
    this.route = route;
    this.reason = reason;
  }
}
