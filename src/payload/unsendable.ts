/* The error of a value that a handler returned and that cannot be sent. */

/** Its message has the place in the value and the remedy; the pipeline adds the route. */
export class UnsendableError extends TypeError {}
