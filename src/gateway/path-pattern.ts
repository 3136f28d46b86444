/*
 * Writes the path of a route as a regular expression for a gateway.
 *
 * ```
 * "/users/:id"       → ^/users/[^/]+$
 * "/n/:n(\\d+)/a b"  → ^/n/[^/]+/a(?:\x20|%20)b$
 * "/files/*rest"     → (?s)^/files/.
 * ```
 *
 * A parameter is one segment that is not empty, with or without a constraint: the service decides, so the expression
 * only has to match every path that the route may match. It has no character that a configuration file would read as
 * its own (quotes, spaces, `$`, braces, `#`, `;`): these are `\xHH`, which PCRE, RE2 and Rust's engine read alike.
 */

import type { Segment } from '../endpoint/pattern.js';

/** Settings of {@link formatRegex}. */
interface RegexFormat {
  /** Text before the path in the undecoded URL: `/billing`. */
  readonly prefix?: string | undefined;
  /** Characters of static text that the compared path may also contain as an escape. Default: no character. */
  readonly escapable?: RegExp | undefined;
  /** Expression of a wildcard, for a gateway that reads no flags such as `(?s)`. Default: any text. */
  readonly rest?: string | undefined;
  /** Mark of the end. Default: `$`, which PCRE also matches before a newline at the end of the path. */
  readonly end?: string;
}

/** The end of a path, and nothing else. */
export const PATH_END = '\\z';

/** Formats the expression of a path. */
export function formatRegex(segments: readonly Segment[], format: RegexFormat): string {
  const { prefix = '', escapable, rest, end = '$' } = format;
  let text = `^${formatText(prefix)}`;
  for (const segment of segments) {
    if (segment.kind === 'static') text += `/${formatText(segment.text, escapable)}`;
    else if (segment.kind === 'param') text += '/[^/]+';
    else return rest === undefined ? `(?s)${text}/.` : `${text}/${rest}`;
  }
  return text + end;
}

/** Characters that a path has to escape (RFC 3986, section 3.3). */
const NEEDS_ESCAPE = /[^A-Za-z0-9._~!$&'()*+,;=:@-]/;

/**
 * Formats the expression for a gateway that compares the decoded path, unless it has an escaped slash or a dot segment:
 * then the gateway compares the undecoded path. A path without parameters never has them.
 */
export function formatEither(segments: readonly Segment[], prefix: string): string {
  const decoded = segments.every(({ kind }) => kind === 'static');
  return formatRegex(segments, { prefix, escapable: decoded ? undefined : NEEDS_ESCAPE, end: PATH_END });
}

/** Formats as many segments as a prefix has: however it was spelled, `/billing` → `/[^/]+`. */
export function formatAnySegments(prefix: string): string {
  return prefix.replace(/[^/]+/g, '[^/]+');
}

/** Formats text that is matched literally, with a second spelling for each character that may be escaped. */
export function formatText(text: string, escapable?: RegExp): string {
  const either = (char: string): string => `(?:${quote(char)}|${formatEscape(char)})`;
  return Array.from(text, (char) => (escapable?.test(char) ? either(char) : quote(char))).join('');
}

/** `é` → `%[Cc]3%[Aa]9` */
function formatEscape(char: string): string {
  const hex = Buffer.from(char).toString('hex').toUpperCase();
  return hex.replace(/../g, '%$&').replace(/[A-F]/g, (digit) => `[${digit}${digit.toLowerCase()}]`);
}

function quote(char: string): string {
  if (/[A-Za-z0-9_/,:@=!~&%<>-]/.test(char) || char > '\x7f') return char;
  if (/[.*+?()|[\]^]/.test(char)) return `\\${char}`;
  return `\\x${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
