/** Lines of a head (RFC 9112, sections 2.2 and 5): nothing but CR LF ends one, and nothing but a field is one. */

import { afterAll, beforeAll, describe, test } from 'vitest';
import { CANARY, get, LAST_ANSWER, Wire, type NamedRow } from '../support/wire.js';

const wire = new Wire();
beforeAll(() => wire.start());
afterAll(() => wire.stop());

const answered = ['GET /', LAST_ANSWER];

describe('a line', () => {
  const refused: readonly (readonly [what: string, bytes: string])[] = [
    ['of the request that ends with LF', `GET / HTTP/1.1\nHost: x\r\n\r\n${CANARY}`],
    ['of the request that ends with CR', `GET / HTTP/1.1\rHost: x\r\n\r\n${CANARY}`],
    ['of the request that ends with CR CR LF', `GET / HTTP/1.1\r\r\nHost: x\r\n\r\n${CANARY}`],
    ['of the request that ends with LF CR', `GET / HTTP/1.1\n\rHost: x\r\n\r\n${CANARY}`],
    ['of a header that ends with LF', get('/', `A: b\nC: d\r\n`)],
    ['of a header that ends with CR', get('/', `A: b\rC: d\r\n`)],
    ['of a header that ends with CR CR LF', get('/', `A: b\r\r\nC: d\r\n`)],
    ['that is empty and ends with LF', `GET / HTTP/1.1\r\nHost: x\r\n\n${CANARY}`],
    ['that is empty and ends with CR', `GET / HTTP/1.1\r\nHost: x\r\n\r${CANARY}`],
    ['that is empty and ends with CR CR LF', `GET / HTTP/1.1\r\nHost: x\r\n\r\r\n${CANARY}`],
    ['that ends with LF, as all others do', `GET / HTTP/1.1\nHost: x\n\n${CANARY}`],
    ['that ends the head with LF LF', `GET / HTTP/1.1\r\nHost: x\n\n${CANARY}`],
    ['that hides a request behind LF LF', get('/', `A: b\n\n${CANARY}`)],
    ['that hides a request behind CR CR', get('/', `A: b\r\r${CANARY}`)],
    ['that begins with a space before the first header', `GET / HTTP/1.1\r\n Host: x\r\n\r\n${CANARY}`],
    ['that begins with a tab before the first header', `GET / HTTP/1.1\r\n\tHost: x\r\n\r\n${CANARY}`],
    ['of white space before the first header', `GET / HTTP/1.1\r\n \r\nHost: x\r\n\r\n${CANARY}`],
    ['that another is folded behind', get('/', 'A: b\r\n c\r\n')],
    ['that another is folded behind with a tab', get('/', 'A: b\r\n\tc\r\n')],
    ['that an empty one is folded behind', get('/', 'A:\r\n \r\n')],
    ['that a request is folded behind', get('/', `A: b\r\n ${CANARY}`)],
    ['of Host that another is folded behind', `GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n${CANARY}`],
    ['of white space at the end', get('/', ' \r\n')],
    ['without a colon', get('/', 'Abc\r\n')],
    ['of a second request', get('/', 'GET /smuggled HTTP/1.1\r\n')],
  ];
  test.for(refused)('%s is refused', ([, bytes]) => wire.check({ bytes, answers: [400] }));

  const rows: readonly NamedRow[] = [
    ['that is empty is skipped before a request', { bytes: `\r\n${get('/')}`, answers: answered }],
    ['that is empty is skipped before a request, as are more of them',
      { bytes: `${'\r\n'.repeat(100)}${get('/')}`, answers: answered }],
    ['that is empty is skipped between requests', { bytes: `${get('/')}\r\n\r\n`, answers: answered }],
    ['that is not empty before a request is refused', { bytes: ` ${get('/')}`, answers: [400] }],
    ['that begins with a byte order mark is refused', { bytes: `\xef\xbb\xbf${get('/')}`, answers: [400] }],
    ['that begins with a NUL is refused', { bytes: `\x00${get('/')}`, answers: [400] }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));
});

describe('the name of a header', () => {
  const refused: readonly (readonly [what: string, header: string])[] = [
    ['before a space', 'A : b'],
    ['before a tab', 'A\t: b'],
    ['before a vertical tab', 'A\x0b: b'],
    ['that is empty', ': b'],
    ['that is empty, as is its value', ':'],
    ['that is a space', ' : b'],
    ['with a NUL', 'A\x00b: c'],
    ['with a control character', 'A\x01: c'],
    ['with a bare CR', 'A\rb: c'],
    ['with a bare LF', 'A\nb: c'],
    ['with DEL', 'A\x7f: c'],
    ['beyond ASCII', '\xe9: c'],
    ['in UTF-8', 'na\xc3\xafve: c'],
    ['that begins with a no-break space', '\xa0A: c'],
    ['in quotes', '"A": c'],
    ...[...'(),/;<=>?@[\\]{}'].map((char) => [`with ${char}`, `A${char}b: c`] as const),
  ];
  test.for(refused)('%s is refused', ([, header]) => wire.check({ bytes: get('/', `${header}\r\n`), answers: [400] }));

  test.for([
    ['of every character that a token may have', "!#$%&'*+-.^_`|~09azAZ"],
    ['that every object has', '__proto__: x\r\nconstructor: y\r\ntoString: z\r\nhasOwnProperty'],
  ])('%s is taken', ([, name]) => wire.check({ bytes: get('/', `${name}: c\r\n`), answers: answered }));
});

describe('the value of a header', () => {
  const bad: readonly (readonly [what: string, char: string])[] = [
    ['NUL', '\x00'],
    ['SOH', '\x01'],
    ['BS', '\x08'],
    ['VT', '\x0b'],
    ['FF', '\x0c'],
    ['ESC', '\x1b'],
    ['US', '\x1f'],
    ['DEL', '\x7f'],
  ];
  const refused = bad.flatMap(([what, char]) => {
    return [
      [`${what} inside`, `b${char}c`],
      [`${what} at its start`, `${char}c`],
      [`${what} at its end`, `b${char}`],
    ] as const;
  });
  test.for(refused)('with %s is refused', ([, value]) =>
    wire.check({ bytes: get('/', `A: ${value}\r\n`), answers: [400] }),
  );

  test.for([
    ['with a tab inside', 'A: b\tc'],
    ['with bytes beyond ASCII', 'A: b\xe9\xff'],
    ['that is empty', 'A:'],
    ['between spaces and tabs', 'A: \t b \t '],
    ['without a space before it', 'A:b'],
    ['with colons, quotes and backslashes', 'A: "b:\\"c\\": d'],
  ])('%s is taken', ([, header]) => wire.check({ bytes: get('/', `${header}\r\n`), answers: answered }));
});
