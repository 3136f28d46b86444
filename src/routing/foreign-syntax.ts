/*
 * Knows what other routers write in a path and this one would take for plain text, which no request would ever have:
 * `/users/{id}`, `/a*`, `/(\d+)`, `/a%20b`. Text that merely has such characters stays text: `/Products(1)`, `/c++`, `/a{b}`.
 */

/** Something of another router's, and what to write here. */
export interface ForeignSyntax {
  readonly index: number;
  readonly what: string;
  readonly remedy: string;
}

/** Finds foreign syntax in one static segment; `last` tells whether it is the last one of its path. */
export function findForeignSyntax(text: string, last: boolean): ForeignSyntax | undefined {
  for (const { pattern, what, remedy } of FORMS) {
    const found = pattern.exec(last ? text : `${text}/`);
    if (found === null) continue;
    const [part = '', name = ''] = found;
    const written = part.replace(/\/$/, '');
    return { index: found.index, what: `${what} "${written}"`, remedy: remedy(name, written) };
  }
  return undefined;
}

interface Form {
  readonly pattern: RegExp;
  readonly what: string;
  /** @param name of the parameter, where the form has one */
  readonly remedy: (name: string, written: string) => string;
}

const OPTIONAL = 'register two paths, one with the part and one without it';

const FORMS: readonly Form[] = [
  {
    pattern: /%[0-9A-Fa-f]{2}/,
    what: 'percent-encoded',
    remedy: () => 'write the decoded character: paths are matched decoded',
  },
  {
    pattern: /^\{\*?([A-Za-z_]\w*)(?::[^}]*)?[?*+]?\}\??\/?$/,
    what: 'parameter in braces',
    remedy: (name, written) =>
      /\*|:path/.test(written) ? `write *${name} as the last segment` : `write :${name}, or :${name}(regex)`,
  },
  {
    pattern: /^<(?:[a-z]+:)?([A-Za-z_]\w*)>\/?$/,
    what: 'parameter in angle brackets',
    remedy: (name) => `write :${name}, or :${name}(regex)`,
  },
  {
    pattern: /^\[{1,2}(?:\.{3})?([A-Za-z_]\w*)\]{1,2}\/?$/,
    what: 'parameter in brackets',
    remedy: (name, written) => (written.includes('...') ? `write *${name} as the last segment` : `write :${name}`),
  },
  {
    pattern: /\([^)]*(?:[\\[\]+*?|^$])[^)]*\)?/,
    what: 'expression without a parameter',
    remedy: (_name, written) => `give it a name: :name${written.endsWith(')') ? written : '(regex)'}`,
  },
  { pattern: /\{\//, what: 'optional part', remedy: () => OPTIONAL },
  { pattern: /[\w)}\]]\?(?=\/?$)/, what: 'optional part', remedy: () => OPTIONAL },
  {
    pattern: /(?<=.)\*(?=\/?$)/,
    what: 'wildcard at the end of a segment,',
    remedy: () => 'write :name(regex) for a part of a segment, or *name as the last segment for the rest of the path',
  },
];
