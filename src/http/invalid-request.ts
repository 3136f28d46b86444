/*
 * The error of a request that does not fit the schemas of its route.
 */

import { FrameworkErrorCodes, type ErrorCode } from '../base/error-codes.js';
import { BadRequest } from '../base/errors.js';
import type { Finding } from '../payload/schema-check.js';

/** One finding in a request. */
export interface RequestFinding extends Finding {
  /** The part of the request that it is in. */
  readonly in: 'params' | 'query' | 'headers' | 'body';
}

/** 400 for a request that does not fit the schemas of its route. The body has the findings. */
export class InvalidRequest extends BadRequest {
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_invalid_request;

  /** The first 32 findings, as the member `errors` of the body. */
  readonly findings: readonly RequestFinding[];

  /** @internal */
  constructor(description: string | undefined, findings: readonly RequestFinding[]) {
    super(description);
    this.findings = findings;
  }
}
