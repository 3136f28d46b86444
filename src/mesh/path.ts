/*
 * Paths of calls that are put together from values.
 */

import { assertSegment, encodeParameter } from '../routing/path-parameter.js';

/**
 * A template tag that builds a path: each value becomes a part of one segment, whatever it holds.
 *
 * `` path`/invoices/${'7/refund'}` `` is `/invoices/7%2Frefund`, where a plain template would call another endpoint.
 *
 * @throws {TypeError} for a value that is undefined, null or an object. For a text that is empty, `.`, `..` or has a
 * lone surrogate, the error has `statusCode: 400` and `expose: true`: uncaught in a handler, it is a 400
 */
export function path(parts: TemplateStringsArray, ...values: readonly (string | number | bigint)[]): string {
  let text = parts[0] ?? '';
  values.forEach((value, index) => {
    text += encodeParameter(`value ${index + 1} of the path`, value) + (parts[index + 1] ?? '');
  });
  text.split(/[/?]/).forEach(assertSegment);
  return text;
}
