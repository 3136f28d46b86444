/**
 * The request line and `Host` (RFC 9112, section 3): what is refused is refused once, and what is routed is the path
 * alone.
 */

import { afterAll, beforeAll, describe, test } from 'vitest';
import { CANARY, get, LAST_ANSWER, Wire, type NamedRow } from '../support/wire.js';

const wire = new Wire();
beforeAll(() => wire.start());
afterAll(() => wire.stop());

const answered = ['GET /', LAST_ANSWER];
const lined = (line: string): string => `${line}\r\nHost: x\r\n\r\n`;

describe('the request line', () => {
  const refused: readonly (readonly [what: string, line: string])[] = [
    ['with tabs', 'GET\t/\tHTTP/1.1'],
    ['with a vertical tab', 'GET\x0b/ HTTP/1.1'],
    ['with a form feed', 'GET /\x0cHTTP/1.1'],
    ['with a space at its end', 'GET / HTTP/1.1 '],
    ['with a space at its start', ' GET / HTTP/1.1'],
    ['without a method', '/ HTTP/1.1'],
    ['without a target', 'GET HTTP/1.1'],
    ['with an empty target', 'GET  HTTP/1.1'],
    ['with an empty version', 'GET / '],
    ['that is a method alone', 'GET'],
    ['with a method in lower case', 'get / HTTP/1.1'],
    ['with a method in mixed case', 'Get / HTTP/1.1'],
    ['with more behind a method', 'GETX / HTTP/1.1'],
    ['with a part of a method', 'GE / HTTP/1.1'],
    ['with a NUL in its method', 'GE\x00T / HTTP/1.1'],
    ['with a name in lower case', 'GET / http/1.1'],
    ['with another name', 'GET / XTTP/1.1'],
    ['with more behind the name', 'GET / HTTPS/1.1'],
    ['with more behind the version', 'GET / HTTP/1.1x'],
    ['with a minor version of two digits', 'GET / HTTP/1.10'],
    ['with a major version of two digits', 'GET / HTTP/01.1'],
    ['without a minor version', 'GET / HTTP/1'],
    ['with a comma in its version', 'GET / HTTP/1,1'],
    ['without a slash before its version', 'GET / HTTP 1.1'],
    ['with a space before its version', 'GET / HTTP/ 1.1'],
    ['with version 0.0', 'GET / HTTP/0.0'],
    ['with version 0.9', 'GET / HTTP/0.9'],
    ['with version 1.2', 'GET / HTTP/1.2'],
    ['with version 1.9', 'GET / HTTP/1.9'],
    ['with version 2.0', 'GET / HTTP/2.0'],
    ['with version 3.0', 'GET / HTTP/3.0'],
    ['of SIP', 'OPTIONS sip:x SIP/2.0'],
    ['of HTTP/2, with prior knowledge', 'PRI * HTTP/2.0\r\n\r\nSM'],
    ['behind the PROXY protocol', 'PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1'],
    ['of SMTP', 'EHLO x'],
  ];
  test.for(refused)('%s is refused', ([, line]) =>
    wire.check({ bytes: lined(line) + CANARY, answers: [[400, 501, 505]] }),
  );

  test.for(['GET /\r\n', 'GET /\n', 'GET / \r\n'])('%j of HTTP/0.9 is refused', (bytes) =>
    wire.check({ bytes, answers: [400] }),
  );
  test('may have more than one space between its parts', () =>
    wire.check({ bytes: lined('GET  /  HTTP/1.1'), answers: answered }));
  // node:http does not tell its name from that of HTTP: it can only be answered once, and as what it says it is.
  test('"GET / RTSP/1.0" lets nothing behind it in', () =>
    wire.check({ bytes: lined('GET / RTSP/1.0'), answers: ['GET /'], seen: ['/'] }));
  test.for(['DESCRIBE / RTSP/1.0', 'SOURCE / ICE/1.0'])('%j is refused', (line) =>
    wire.check({ bytes: lined(line), answers: [400] }),
  );
});

describe('the target', () => {
  const rows: readonly NamedRow[] = [
    ['in absolute form is its path, whatever Host says',
      { bytes: lined('GET http://other/ HTTP/1.1'), answers: answered, seen: ['http://other/', '/last'] }],
    ['in absolute form may be without a path',
      { bytes: lined('GET http://x HTTP/1.1'), answers: answered, seen: ['http://x', '/last'] }],
    ['in absolute form may have a query in place of a path', {
      bytes: lined('GET http://x?/smuggled HTTP/1.1'),
      answers: answered, seen: ['http://x?/smuggled', '/last'],
    }],
    ['in absolute form may be in capitals',
      { bytes: lined('GET HTTP://X/ HTTP/1.1'), answers: answered, seen: ['HTTP://X/', '/last'] }],
    ['in absolute form may have an address for a host', {
      bytes: lined('GET http://[::1]:80/ HTTP/1.1'),
      answers: answered, seen: ['http://[::1]:80/', '/last'],
    }],
    ['in absolute form does not make up for Host',
      { bytes: `GET http://x/ HTTP/1.1\r\n\r\n${CANARY}`, answers: [400] }],
    ['in absolute form with user information is refused',
      { bytes: lined('GET http://a@x/ HTTP/1.1'), answers: [400, LAST_ANSWER] }],
    ['in absolute form with a password is refused',
      { bytes: lined('GET http://a:b@x/ HTTP/1.1'), answers: [400, LAST_ANSWER] }],
    ['in absolute form without a host is refused',
      { bytes: lined('GET http:///smuggled HTTP/1.1'), answers: [400, LAST_ANSWER] }],
    ['in absolute form with a port that is none is refused',
      { bytes: lined('GET http://x:8x/ HTTP/1.1'), answers: [400, LAST_ANSWER] }],
    ['in absolute form with half an address is refused',
      { bytes: lined('GET http://[::1/ HTTP/1.1'), answers: [400, LAST_ANSWER] }],
    ['in absolute form with a backslash for a slash is refused',
      { bytes: lined('GET http://x\\/ HTTP/1.1'), answers: [400] }],
    ['in absolute form with another scheme is refused',
      { bytes: lined('GET ftp://x/ HTTP/1.1'), answers: [400, LAST_ANSWER] }],
    ['with a scheme and one slash is refused', { bytes: lined('GET http:/smuggled HTTP/1.1'), answers: [400] }],
    ['with a scheme and no slash is refused', { bytes: lined('GET http:smuggled HTTP/1.1'), answers: [400] }],
    ['in authority form is refused for GET', { bytes: lined('GET x:80 HTTP/1.1'), answers: [400] }],
    ['in asterisk form is the server, for OPTIONS',
      { bytes: lined('OPTIONS * HTTP/1.1'), answers: [204, LAST_ANSWER], seen: ['*', '/last'] }],
    ['that begins with an asterisk is refused', { bytes: lined('OPTIONS *x HTTP/1.1'), answers: [400, LAST_ANSWER] }],
    ['in asterisk form is refused behind other requests, too',
      { bytes: `${get('/')}${lined('GET * HTTP/1.1')}`, answers: ['GET /', 400, LAST_ANSWER] }],
    ['that is a query alone is refused', { bytes: lined('GET ?a HTTP/1.1'), answers: [400] }],
    ['that is a fragment alone is refused', { bytes: lined('GET # HTTP/1.1'), answers: [400] }],
    ['in absolute form with a fragment is refused',
      { bytes: lined('GET http://x/#f HTTP/1.1'), answers: [400, LAST_ANSWER] }],
    ['that begins with a backslash is refused', { bytes: lined('GET \\smuggled HTTP/1.1'), answers: [400] }],
    ['that begins with two slashes is a path, not a host', {
      bytes: lined('GET //x/smuggled HTTP/1.1'),
      answers: [404, LAST_ANSWER], seen: ['//x/smuggled', '/last'],
    }],
    ['with an absolute one in its path is a path', {
      bytes: lined('GET /http://x/smuggled HTTP/1.1'),
      answers: [404, LAST_ANSWER], seen: ['/http://x/smuggled', '/last'],
    }],
    ['with a space is refused', { bytes: lined('GET /a b HTTP/1.1'), answers: [400] }],
    ['with a space and a version inside is refused', { bytes: lined('GET / HTTP/1.1 HTTP/1.1'), answers: [400] }],
    ['with a tab is refused', { bytes: lined('GET /a\tb HTTP/1.1'), answers: [400] }],
    ['with a NUL is refused', { bytes: lined('GET /\x00 HTTP/1.1'), answers: [400] }],
    ['with a bare CR is refused', { bytes: lined('GET /\r HTTP/1.1'), answers: [400] }],
    ['with a bare CR and a request behind it is refused', { bytes: `GET /\r${CANARY}`, answers: [400] }],
    ['with DEL is refused', { bytes: lined('GET /\x7f HTTP/1.1'), answers: [400] }],
    ['in UTF-8 is refused', { bytes: lined('GET /\xc3\xa9 HTTP/1.1'), answers: [400] }],
    ['with an escaped NUL is a path of its own',
      { bytes: lined('GET /smuggled%00 HTTP/1.1'), answers: [404, LAST_ANSWER], seen: ['/smuggled%00', '/last'] }],
    ['with an escaped line end stays one line', {
      bytes: lined('GET /%0d%0aHost:%20y HTTP/1.1'),
      answers: [404, LAST_ANSWER], seen: ['/%0d%0aHost:%20y', '/last'],
    }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));
});

describe('Host', () => {
  const refused: readonly (readonly [what: string, header: string])[] = [
    ['that is missing', ''],
    ['under another name', 'X-Host: x\r\n'],
    ['that comes twice, the same', 'Host: x\r\nHost: x\r\n'],
    ['that comes twice in other letters', 'Host: x\r\nhOST: y\r\n'],
    ['of white space', 'Host: \t\r\n'],
    ['with a path', 'Host: x/y\r\n'],
    ['with a query', 'Host: x?y\r\n'],
    ['with a fragment', 'Host: x#y\r\n'],
    ['with a scheme', 'Host: http://x\r\n'],
    ['with a backslash', 'Host: x\\y\r\n'],
    ['with a tab inside', 'Host: x\ty\r\n'],
    ['in quotes', 'Host: "x"\r\n'],
    ['with angle brackets', 'Host: <x>\r\n'],
    ['beyond ASCII', 'Host: \xe9\r\n'],
    ['with a malformed escape', 'Host: %zz\r\n'],
    ['that is a port alone', 'Host: :80\r\n'],
    ['with a port of letters', 'Host: x:8a\r\n'],
    ['with a negative port', 'Host: x:-1\r\n'],
    ['with port 65536', 'Host: x:65536\r\n'],
    ['with a port of six digits', 'Host: x:000080\r\n'],
    ['with two ports', 'Host: x:80:80\r\n'],
    ['with an address without brackets', 'Host: ::1\r\n'],
    ['with half a bracket', 'Host: [::1\r\n'],
    ['with more behind its brackets', 'Host: [::1]x\r\n'],
    ['with empty brackets', 'Host: []\r\n'],
    ['with one colon in brackets', 'Host: [:]\r\n'],
    ['with IPv4 in brackets', 'Host: [1.2.3.4]\r\n'],
    ['with a comma', 'Host: x,y\r\n'],
    ['with a name in brackets', 'Host: [x]\r\n'],
    ['with an address of the future', 'Host: [v1.x]\r\n'],
  ];
  test.for(refused)('%s is refused, and ends the connection', ([, header]) =>
    wire.check({ bytes: `GET / HTTP/1.1\r\n${header}\r\n`, answers: [400] }),
  );

  const names = ['x', 'X', 'x:', 'x:80', 'x:65535', 'x_y', 'x.', '%41', '1.2.3.4'];
  const addresses = ['[::1]', '[::1]:80', '[::]', '[::ffff:1.2.3.4]', '[1:2:3:4:5:6:7:8]', '[fe80::]'];
  test.for([...names, ...addresses])('%s is taken', (host) => {
    return wire.check({ bytes: `GET / HTTP/1.1\r\nHOST:${host}\r\n\r\n`, answers: answered });
  });

  const rows: readonly NamedRow[] = [
    ['may be left out in HTTP/1.0, whose connection ends', { bytes: 'GET / HTTP/1.0\r\n\r\n', answers: ['GET /'] }],
    ['may be left out in HTTP/1.0, whose connection may be kept',
      { bytes: 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', answers: answered }],
    ['that comes twice is refused in HTTP/1.0',
      { bytes: 'GET / HTTP/1.0\r\nConnection: keep-alive\r\nHost: x\r\nHost: y\r\n\r\n', answers: [400] }],
    ['that is malformed is refused in HTTP/1.0',
      { bytes: 'GET / HTTP/1.0\r\nConnection: keep-alive\r\nHost: a b\r\n\r\n', answers: [400] }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));
});
