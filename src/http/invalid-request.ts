/*
 * The error of a request that does not fit the schemas of its route.
 */

import { FrameworkErrorCodes, type ErrorCode } from '../base/error-codes.js';
import { BadRequest } from '../base/errors.js';
import { describeFindings, toFinding, type Finding } from '../payload/findings.js';
import type { SchemaIssue } from '../payload/standard-schema.js';
import type { Part } from '../endpoint/schemas.js';

/** One finding in a request. */
export interface RequestFinding extends Finding {
  /** The part of the request that it is in. */
  readonly in: Part;
}

const MAX_FINDINGS = 32;

/** 400 with the findings in the body. */
export class InvalidRequest extends BadRequest {
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_invalid_request;

  /** The first 32. */
  readonly findings: readonly RequestFinding[];

  /** @param parts the parts that don't fit, each with one issue or more */
  constructor(parts: readonly { readonly part: Part; readonly issues: readonly SchemaIssue[] }[]) {
    const count = parts.reduce((sum, { issues }) => sum + issues.length, 0);
    super(parts[0] && describeFindings(parts[0].part, parts[0].issues, count));
    this.findings = parts
      .flatMap(({ part, issues }) => issues.slice(0, MAX_FINDINGS).map((issue) => ({ in: part, ...toFinding(issue) })))
      .slice(0, MAX_FINDINGS);
  }
}
