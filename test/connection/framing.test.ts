/**
 * Where a request ends (RFC 9112, section 6): no byte of a body is ever taken for a request (CVE-2024-27982,
 * CVE-2026-58044).
 */

import { afterAll, beforeAll, describe, test } from 'vitest';
import { CANARY, CHUNKED, chunk, END, get, LAST_ANSWER, post, read, Wire, type NamedRow } from '../support/wire.js';

const wire = new Wire({ bodyLimit: 1000 });
beforeAll(() => wire.start());
afterAll(() => wire.stop());

const N = CANARY.length;
const HEX = N.toString(16);
const whole = [read(CANARY), LAST_ANSWER];

describe('Content-Length', () => {
  const refused: readonly (readonly [what: string, headers: string])[] = [
    ['that comes twice', `Content-Length: ${N}\r\nContent-Length: ${N}\r\n`],
    ['that contradicts another', `Content-Length: 0\r\nContent-Length: ${N}\r\n`],
    ['that contradicts another the other way round', `Content-Length: ${N}\r\nContent-Length: 0\r\n`],
    ['that is a list of equals', `Content-Length: ${N}, ${N}\r\n`],
    ['that is a list of others', `Content-Length: 0, ${N}\r\n`],
    ['that ends with a comma', `Content-Length: ${N},\r\n`],
    ['with a plus sign', `Content-Length: +${N}\r\n`],
    ['with a minus sign', `Content-Length: -${N}\r\n`],
    ['that is minus zero', 'Content-Length: -0\r\n'],
    ['in hexadecimal', `Content-Length: 0x${HEX}\r\n`],
    ['with letters', `Content-Length: ${HEX}h\r\n`],
    ['with an exponent', `Content-Length: ${N}e0\r\n`],
    ['with a fraction', `Content-Length: ${N}.0\r\n`],
    ['with a space inside', 'Content-Length: 3 5\r\n'],
    ['with an underscore inside', 'Content-Length: 3_5\r\n'],
    ['in quotes', `Content-Length: "${N}"\r\n`],
    ['behind a vertical tab', `Content-Length: \x0b${N}\r\n`],
    ['behind a no-break space', `Content-Length: \xa0${N}\r\n`],
    ['behind a NUL', `Content-Length: \x00${N}\r\n`],
    ['in the digits of another script', 'Content-Length: \xd9\xa3\xd9\xa5\r\n'],
    ['without a value', 'Content-Length:\r\n'],
    ['of 2^64', 'Content-Length: 18446744073709551616\r\n'],
    ['of 2^64 and the length of the body', `Content-Length: ${2n ** 64n + BigInt(N)}\r\n`],
    ['of a thousand digits', `Content-Length: ${'9'.repeat(1000)}\r\n`],
    ['on a folded line', `Content-Length:\r\n ${N}\r\n`],
    ['that goes on on a folded line', `Content-Length: 0\r\n ${N}\r\n`],
    ['with a space before its colon', `Content-Length : ${N}\r\n`],
    ['beside chunked', `Content-Length: ${N}\r\n${CHUNKED}`],
    ['of zero beside chunked', `Content-Length: 0\r\n${CHUNKED}`],
    ['behind chunked', `${CHUNKED}Content-Length: ${N}\r\n`],
    ['beside another transfer coding', `Content-Length: ${N}\r\nTransfer-Encoding: identity\r\n`],
  ];
  test.for(refused)('%s is refused', ([, headers]) => wire.check({ bytes: post(headers, CANARY), answers: [400] }));

  const rows: readonly NamedRow[] = [
    ['frames the body', { bytes: post(`Content-Length: ${N}\r\n`, CANARY), answers: whole }],
    ['may have leading zeros', { bytes: post(`Content-Length: 000${N}\r\n`, CANARY), answers: whole }],
    // Node.js 20 refuses white space behind it.
    ['may stand between spaces and tabs',
      { bytes: post(`Content-Length: \t ${N}\t \r\n`, CANARY), answers: whole, or: [400] }],
    ['is not lost when Connection lists it',
      { bytes: post(`Connection: content-length\r\nContent-Length: ${N}\r\n`, CANARY), answers: whole }],
    ['with an underscore is no length', { bytes: post('Content_Length: 5\r\n', ''), answers: [read(''), LAST_ANSWER] }],
    ['of zero ends the request with its head',
      { bytes: post('Content-Length: 0\r\n', ''), answers: [read(''), LAST_ANSWER] }],
    ['may be left out, for no body', { bytes: post('', ''), answers: [read(''), LAST_ANSWER] }],
    ['frames the body of a GET',
      { bytes: get('/read', `Content-Length: ${N}\r\n`) + CANARY, answers: [read(CANARY, 'GET'), LAST_ANSWER] }],
    ['frames the body of a DELETE', {
      bytes: `DELETE /read HTTP/1.1\r\nHost: x\r\nContent-Length: ${N}\r\n\r\n${CANARY}`,
      answers: [read(CANARY, 'DELETE'), LAST_ANSWER],
    }],
    ['frames the body of an HTTP/1.0 request',
      { bytes: post(`Connection: keep-alive\r\nContent-Length: ${N}\r\n`, CANARY, '/read', '1.0'), answers: whole }],
    ['frames a body that no handler reads',
      { bytes: post(`Content-Length: ${N}\r\n`, CANARY, '/unread'), answers: ['POST /unread', LAST_ANSWER] }],
    ['frames the unread body of a GET',
      { bytes: get('/', `Content-Length: ${N}\r\n`) + CANARY, answers: ['GET /', LAST_ANSWER] }],
    ['frames a body without a route', {
      bytes: post(`Content-Length: ${N}\r\n`, CANARY, '/nowhere'),
      answers: [404, LAST_ANSWER], seen: ['/nowhere', '/last'],
    }],
    ['frames a body that comes with the wrong method', {
      bytes: post(`Content-Length: ${N}\r\n`, CANARY, '/last'),
      answers: [405, LAST_ANSWER], seen: ['/last', '/last'],
    }],
    ['that is too short leaves the next request to begin in time', {
      bytes: post('Content-Length: 3\r\n', `abc${get('/')}`),
      answers: [read('abc'), 'GET /', LAST_ANSWER],
    }],
    ['that is too short leaves what is no request to be refused', {
      bytes: post('Content-Length: 3\r\n', 'abcdef'),
      answers: [read('abc'), [400, 501]], seen: ['/read'],
    }],
    ['that is too long takes what follows as body',
      { bytes: post(`Content-Length: ${N + 5}\r\n`, CANARY), ends: true, answers: [400], seen: ['/read'] }],
    ['that is too long gets one answer where nobody reads', {
      bytes: post(`Content-Length: ${N + 5}\r\n`, CANARY, '/unread'),
      ends: true, answers: ['POST /unread'],
    }],
    ['of 2^64 - 1 is taken at its word',
      { bytes: post('Content-Length: 18446744073709551615\r\n', CANARY), ends: true, answers: [413], seen: ['/read'] }],
    ['that no double can hold is taken at its word', {
      bytes: post('Content-Length: 9007199254740993\r\n', CANARY),
      ends: true, answers: [413], seen: ['/read'],
    }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));
});

describe('Transfer-Encoding', () => {
  const refused: readonly (readonly [value: string, status: number | readonly number[]])[] = [
    ['chunked, chunked', 400],
    ['identity', 400],
    ['gzip', 400],
    ['chunked, gzip', 400],
    ['chunked, identity', 400],
    ['gzip, chunked', 501],
    ['identity, chunked', 501],
    ['x, chunked', 501],
    [',chunked', 501],
    [', chunked', 501],
    ['chunked,', 400],
    ['xchunked', 400],
    ['chunkedx', 400],
    ['x chunked', [400, 501]],
    ['chunked x', 400],
    ['chunked;x', 400],
    ['chunked;q=0.5', 400],
    ['chunked\t ', 400],
    ['"chunked"', 400],
    ["'chunked'", 400],
    ['chunk', 400],
    ['\x0bchunked', 400],
    ['chunked\x0b', 400],
    ['\x0cchunked', 400],
    ['\x00chunked', 400],
    ['chunked\x00', 400],
    ['\xa0chunked', 400],
    ['\x85chunked', 400],
    ['chun\xadked', 400],
    ['\r\n chunked', 400],
    ['\r\n\tchunked', 400],
    ['chunked\r\n ', 400],
    ['x\r\n chunked', 400],
    ['chun\r\n ked', 400],
    ['chunked\r', 400],
    ['chunked\n', 400],
    // Node.js 20 takes it for none at all, and the body for the next request.
    ['', [400, 501]],
    [' ', [400, 501]],
  ];
  test.for(refused)('%j is refused', ([value, status]) => {
    return wire.check({ bytes: post(`Transfer-Encoding: ${value}\r\n`, chunk(CANARY) + END), answers: [status] });
  });

  test.for(['', ' '])('of nothing but %j lets no request out of the body', (value) => {
    return wire.check({ bytes: post(`Transfer-Encoding:${value}\r\n`, CANARY), answers: [[400, 501]] });
  });

  const pairs: readonly (readonly [what: string, headers: string, status: number | readonly number[]])[] = [
    ['chunked twice', `${CHUNKED}${CHUNKED}`, 400],
    ['chunked, then identity', `${CHUNKED}Transfer-Encoding: identity\r\n`, 400],
    ['identity, then chunked', `Transfer-Encoding: identity\r\n${CHUNKED}`, 501],
    ['gzip, then chunked', `Transfer-Encoding: gzip\r\n${CHUNKED}`, 501],
    ['nothing, then chunked', `Transfer-Encoding:\r\n${CHUNKED}`, [400, 501]],
    ['chunked, its name before a space', 'Transfer-Encoding : chunked\r\n', 400],
    ['chunked, its name before a tab', 'Transfer-Encoding\t: chunked\r\n', 400],
    ['chunked, its name behind a space', ' Transfer-Encoding: chunked\r\n', 400],
    ['chunked, its name behind a vertical tab', '\x0bTransfer-Encoding: chunked\r\n', 400],
    ['chunked, its line behind a bare LF', 'X: y\nTransfer-Encoding: chunked\r\n', 400],
    ['chunked, its line behind a bare CR', 'X: y\rTransfer-Encoding: chunked\r\n', 400],
    ['chunked, its line behind LF CR', 'X: y\n\rTransfer-Encoding: chunked\r\n', 400],
  ];
  test.for(pairs)('in the headers %s is refused', ([, headers, status]) =>
    wire.check({ bytes: post(headers, chunk(CANARY) + END), answers: [status] }),
  );

  const kept = 'Connection: keep-alive\r\n';
  const old = [
    CHUNKED,
    CHUNKED + kept,
    `${CHUNKED}Content-Length: ${N}\r\n${kept}`,
    `Transfer-Encoding: identity\r\n${kept}`,
  ];
  test.for(old)('in HTTP/1.0 is refused, and ends the connection: %j (RFC 9112, section 6.1)', (headers) => {
    return wire.check({ bytes: post(headers, chunk(CANARY) + END, '/read', '1.0'), answers: [400] });
  });

  const rows: readonly NamedRow[] = [
    ['in capitals frames the body',
      { bytes: post('TRANSFER-ENCODING: CHUNKED\r\n', chunk(CANARY) + END), answers: whole }],
    ['without a space frames the body',
      { bytes: post('Transfer-Encoding:chunked\r\n', chunk(CANARY) + END), answers: whole }],
    ['behind a tab frames the body',
      { bytes: post('Transfer-Encoding: \tchunked\r\n', chunk(CANARY) + END), answers: whole }],
    ['is not lost when Connection lists it',
      { bytes: post(`Connection: transfer-encoding\r\n${CHUNKED}`, chunk(CANARY) + END), answers: whole }],
    ['with an underscore is none',
      { bytes: post('Transfer_Encoding: chunked\r\n', ''), answers: [read(''), LAST_ANSWER] }],
    ['frames the body of a GET',
      { bytes: get('/read', CHUNKED) + chunk(CANARY) + END, answers: [read(CANARY, 'GET'), LAST_ANSWER] }],
    // What is of unknown length and not there yet is not waited for.
    ['frames a body that no handler reads', {
      bytes: post(CHUNKED, chunk(CANARY) + END, '/unread'),
      answers: ['POST /unread', LAST_ANSWER], inPieces: ['POST /unread'],
    }],
    ['frames a body without a route', {
      bytes: post(CHUNKED, chunk(CANARY) + END, '/nowhere'),
      answers: [404, LAST_ANSWER], seen: ['/nowhere', '/last'], inPieces: [404],
    }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));
});

describe('a chunk', () => {
  const refused: readonly (readonly [what: string, body: string])[] = [
    ['with a plus sign', chunk(CANARY, `+${HEX}`) + END],
    ['with a minus sign', chunk(CANARY, `-${HEX}`) + END],
    ['of minus zero bytes', `-0\r\n\r\n${CANARY}`],
    ['with 0x', chunk(CANARY, `0x${HEX}`) + END],
    ['with a leading space', chunk(CANARY, ` ${HEX}`) + END],
    ['with a trailing space', chunk(CANARY, `${HEX} `) + END],
    ['with a trailing tab', chunk(CANARY, `${HEX}\t`) + END],
    ['with a space inside its size', chunk(CANARY, '2 3') + END],
    ['with an underscore inside its size', chunk(CANARY, '2_3') + END],
    ['with a comma behind its size', chunk(CANARY, `${HEX},a`) + END],
    ['with a letter behind its size', chunk(CANARY, `${HEX}x`) + END],
    ['with a NUL behind its size', chunk(CANARY, `${HEX}\x00`) + END],
    ['in quotes', chunk(CANARY, `"${HEX}"`) + END],
    ['without a size', chunk(CANARY, '') + END],
    ['with an extension alone', chunk(CANARY, ';a=b') + END],
    ['of 2^64 bytes', chunk(CANARY, '10000000000000000') + END],
    ['of 2^64 bytes and the length of its data', chunk(CANARY, `1${HEX.padStart(16, '0')}`) + END],
    ['of seventeen f', chunk(CANARY, 'f'.repeat(17)) + END],
    ['whose size line ends with LF', `${HEX}\n${CANARY}\r\n${END}`],
    ['whose size line ends with CR', `${HEX}\r${CANARY}\r\n${END}`],
    ['whose size line ends with CR CR LF', `${HEX}\r\r\n${CANARY}\r\n${END}`],
    ['whose size line ends with LF CR', `${HEX}\n\r${CANARY}\r\n${END}`],
    ['whose data ends with LF', `${HEX}\r\n${CANARY}\n${END}`],
    ['whose data ends with CR', `${HEX}\r\n${CANARY}\r${END}`],
    ['whose data ends without CR LF', `${HEX}\r\n${CANARY}${END}`],
    ['whose data ends with two other bytes', `${HEX}\r\n${CANARY}XX${END}`],
    ['with more data than it says', `3\r\n${CANARY}\r\n${END}`],
    ['with less data than it says', `${(N + 1).toString(16)}\r\n${CANARY}\r\n${END}`],
    ['that is the last, its line ending with LF', `3\r\nabc\r\n0\n\r\n${CANARY}`],
    ['that is the last, the body ending with LF', `3\r\nabc\r\n0\r\n\n${CANARY}`],
    ['that is the last, both ending with LF', `3\r\nabc\r\n0\n\n${CANARY}`],
    ['that is the last, the body ending with CR (CVE-2025-23167)', `3\r\nabc\r\n0\r\n\r${CANARY}`],
    ['that is the last, the body ending with CR CR LF', `3\r\nabc\r\n0\r\n\r\r\n${CANARY}`],
    ['that is missing where the body should end', `3\r\nabc\r\n${CANARY}`],
    ['with an extension that ends with LF', `${HEX};a\n${CANARY}\r\n${END}`],
    ['with an extension that hides a line behind LF', `3;\nxx\r\n${HEX}\r\n${CANARY}\r\n${END}`],
    ['with an extension that hides a line behind CR', `3;a\rxx\r\n${HEX}\r\n${CANARY}\r\n${END}`],
    ['with a quoted extension that hides a line', `3;a="\r\nabc\r\n${END}${CANARY}"\r\nabc\r\n${END}`],
    ['with a quoted extension that hides a line behind LF', `3;a="\nabc\n0\n\n${CANARY}"\r\nabc\r\n${END}`],
    ['with a quoted extension without an end', `3;a="b\r\nabc\r\n${END}`],
    ['with text behind a quoted extension', `3;a="b"c\r\nabc\r\n${END}`],
    ['with an extension with a NUL', `3;a\x00\r\nabc\r\n${END}`],
    ['with an extension beyond ASCII', `3;a=\xe9\r\nabc\r\n${END}`],
    ['with an extension without a name', `3;\r\nabc\r\n${END}`],
    ['with spaces before its extension', `3 ;a=b\r\nabc\r\n${END}`],
  ];
  test.for(refused)('%s is refused', ([, body]) => wire.check({ bytes: post(CHUNKED, body), answers: [400] }));

  const accepted: readonly (readonly [what: string, body: string, text: string])[] = [
    ['with leading zeros', chunk(CANARY, `000${HEX}`) + END, CANARY],
    ['with more leading zeros than a number has digits', chunk(CANARY, `${'0'.repeat(40)}${HEX}`) + END, CANARY],
    ['that is the last with many zeros', `${chunk(CANARY)}${'0'.repeat(20)}\r\n\r\n`, CANARY],
    ['in capitals', `${chunk('0123456789', 'A')}${END}`, '0123456789'],
    ['beside others', `${[...CANARY].map((char) => chunk(char)).join('')}${END}`, CANARY],
    ['with an extension', `${chunk(CANARY, `${HEX};a=b`)}0;c\r\n\r\n`, CANARY],
    ['with a quoted extension', `${chunk(CANARY, `${HEX};a="b;\\"c";d="0"`)}${END}`, CANARY],
    ['with a long extension', `${chunk(CANARY, `${HEX};${'a'.repeat(900)}`)}${END}`, CANARY],
    ['of no bytes alone', END, ''],
  ];
  test.for(accepted)('%s is read', ([, body, text]) =>
    wire.check({ bytes: post(CHUNKED, body), answers: [read(text), LAST_ANSWER] }),
  );

  const rows: readonly NamedRow[] = [
    ['that is the last ends the body: bytes behind it that are no request are refused', {
      bytes: post(CHUNKED, `3\r\nabc\r\n${END}XYZ`),
      answers: [read('abc'), [400, 501]], seen: ['/read'],
    }],
    ['behind the last one is no chunk any more',
      { bytes: post(CHUNKED, `3\r\nabc\r\n${END}${END}`), answers: [read('abc'), 400], seen: ['/read'] }],
    ['that is the last may have empty lines behind it',
      { bytes: post(CHUNKED, `3\r\nabc\r\n${END}\r\n\r\n`), answers: [read('abc'), LAST_ANSWER] }],
    ['that is the last leaves the next request to begin in time', {
      bytes: post(CHUNKED, `3\r\nabc\r\n${END}${get('/')}`),
      answers: [read('abc'), 'GET /', LAST_ANSWER],
    }],
    ['that never comes gives 400 when the client ends',
      { bytes: post(CHUNKED, '3\r\nabc\r\n'), ends: true, answers: [400], seen: ['/read'] }],
    ['that never comes gives no second answer where nobody reads',
      { bytes: post(CHUNKED, '3\r\nabc\r\n', '/unread'), ends: true, answers: ['POST /unread'] }],
    ['of 2^64 - 1 bytes takes what follows as body', {
      bytes: post(CHUNKED, chunk(CANARY, 'f'.repeat(16)) + END),
      ends: true, answers: [400], seen: ['/read'],
    }],
    ['of 2^63 - 1 bytes takes what follows as body', {
      bytes: post(CHUNKED, chunk(CANARY, `7${'f'.repeat(15)}`) + END),
      ends: true, answers: [400], seen: ['/read'],
    }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));
});

describe('a trailer', () => {
  const refused: readonly (readonly [what: string, trailer: string])[] = [
    ['Content-Length', `Content-Length: ${N}\r\n`],
    ['Transfer-Encoding', CHUNKED],
    ['without a colon', 'nonsense\r\n'],
    ['that looks like a request', 'GET /smuggled HTTP/1.1\r\nHost: x\r\n'],
    ['with a space before its colon', 'X : y\r\n'],
    ['on a folded line', 'X: y\r\n z\r\n'],
    ['behind a space', ' X: y\r\n'],
    ['with a NUL', 'X: \x00\r\n'],
    ['that ends with LF', 'X: y\n'],
    ['with a bare LF inside', 'X: y\nGET /smuggled HTTP/1.1\r\nHost: x\r\n'],
    ['with a bare CR inside', 'X: y\rZ: w\r\n'],
    ['without a name', ': y\r\n'],
  ];
  test.for(refused)('%s is refused', ([, trailer]) =>
    wire.check({ bytes: post(CHUNKED, `3\r\nabc\r\n0\r\n${trailer}\r\n${CANARY}`), answers: [400] }),
  );

  const harmless = [
    'X: y\r\n',
    'Host: evil\r\n',
    'Authorization: Basic eDp5\r\n',
    'Expect: 100-continue\r\n',
    'Connection: upgrade\r\nUpgrade: websocket\r\n',
  ];
  test.for(harmless)('%j changes nothing', (trailer) => {
    return wire.check({ bytes: post(CHUNKED, `3\r\nabc\r\n0\r\n${trailer}\r\n`), answers: [read('abc'), LAST_ANSWER] });
  });
});
