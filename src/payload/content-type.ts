/*
 * Reads `content-type`; the one parser of this header, for requests and for answers (RFC 9110, section 8.3.1).
 */

const JSON_TYPE = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/;

/** Type and subtype in lower case, without parameters; empty without the header. */
// "Application/JSON ; charset=utf-8" → "application/json"
export function mediaTypeOf(header: string | undefined): string {
  if (header === undefined) return '';
  const semicolon = header.indexOf(';');
  let end = semicolon === -1 ? header.length : semicolon;
  // A regular expression that trims the end would be quadratic on runs of spaces.
  while (end > 0 && (header[end - 1] === ' ' || header[end - 1] === '\t')) end -= 1;
  return header.slice(0, end).toLowerCase();
}

/** `application/json`, or anything that ends in `+json` (RFC 6839, section 3.1). */
export function isJsonType(mediaType: string): boolean {
  return mediaType === 'application/json' || JSON_TYPE.test(mediaType);
}
