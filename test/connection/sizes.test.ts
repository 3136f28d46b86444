/**
 * How much a head, a body and what lies between may hold, and that nothing hides beyond a limit (CVE-2026-58044,
 * CVE-2024-22019).
 */

import { afterAll, beforeAll, test } from 'vitest';
import { CANARY, CHUNKED, chunk, END, get, LAST_ANSWER, post, read, Wire, type NamedRow } from '../support/wire.js';

const wire = new Wire({ bodyLimit: 1000 });
beforeAll(() => wire.start());
afterAll(() => wire.stop());

const N = CANARY.length;
const answered = ['GET /', LAST_ANSWER];
const fields = (count: number): string => 'a:b\r\n'.repeat(count);
const padding = (length: number): string => 'a'.repeat(length);

const rows: readonly NamedRow[] = [
  ['999 header fields are taken', { bytes: get('/', fields(998)), answers: answered }],
  ['1000 header fields are refused', { bytes: get('/', fields(999)), answers: [431] }],
  ['1001 header fields are refused', { bytes: get('/', fields(1000)), answers: [431] }],
  ['2000 header fields are refused', { bytes: get('/', fields(1999)), answers: [431] }],
  ['a Content-Length behind 2000 header fields hides nothing',
    { bytes: post(`${fields(1999)}Content-Length: ${N}\r\n`, CANARY), answers: [431] }],
  ['chunked behind 2000 header fields hides nothing',
    { bytes: post(fields(1999) + CHUNKED, chunk(CANARY) + END), answers: [431] }],
  ['an Upgrade behind 2000 header fields hides nothing',
    { bytes: get('/', `${fields(1999)}Connection: upgrade\r\nUpgrade: x\r\n`) + CANARY, answers: [431] }],
  ['a second Host behind 2000 header fields is not overlooked',
    { bytes: get('/', `${fields(1999)}Host: y\r\n`), answers: [431] }],
  ['2000 header fields without an end are refused when the client ends', {
    bytes: `GET / HTTP/1.1\r\nHost: x\r\n${fields(1999)}`,
    ends: true, answers: [[400, 431]],
  }],

  ['a header of 15,000 bytes is taken', { bytes: get('/', `A: ${padding(15_000)}\r\n`), answers: answered }],
  ['a header of 16 KiB is refused', { bytes: get('/', `A: ${padding(16_384)}\r\n`), answers: [431] }],
  ['a header name of 16 KiB is refused', { bytes: get('/', `${padding(16_384)}: b\r\n`), answers: [431] }],
  ['headers of 16 KiB together are refused', { bytes: get('/', `A: ${padding(1000)}\r\n`.repeat(17)), answers: [431] }],
  ['a header of 16 KiB hides no length behind it',
    { bytes: post(`A: ${padding(16_384)}\r\nContent-Length: ${N}\r\n`, CANARY), answers: [431] }],
  ['a big header in front of a body is refused behind other requests, too', {
    bytes: get('/later/5') + post(`A: ${padding(16_384)}\r\nContent-Length: ${N}\r\n`, CANARY),
    answers: ['GET /later/5', 431],
  }],

  ['a target of 15,000 bytes is taken',
    { bytes: get(`/?${padding(15_000)}`), answers: answered, seen: [`/?${padding(15_000)}`, '/last'] }],
  // Where the line does not come at once, node:http does not tell a target from a header.
  ['a target of 16 KiB is refused', { bytes: get(`/?${padding(16_384)}`), answers: [414], inPieces: [[414, 431]] }],
  ['a target of 16 KiB is refused behind other requests, too', {
    bytes: get('/') + get(`/?${padding(16_384)}`),
    answers: ['GET /', 414], inPieces: ['GET /', [414, 431]],
  }],
  ['a target and headers of 16 KiB together are refused',
    { bytes: get(`/?${padding(15_000)}`, `A: ${padding(2000)}\r\n`), answers: [431] }],
  ['a method of 16 KiB is refused',
    { bytes: `${padding(16_384).toUpperCase()} / HTTP/1.1\r\nHost: x\r\n\r\n`, answers: [[400, 501]] }],
  ['a version of 16 KiB is refused',
    { bytes: `GET / HTTP/1.${'1'.repeat(16_384)}\r\nHost: x\r\n\r\n`, answers: [400] }],
  ['10,000 empty lines before a request are skipped', { bytes: '\r\n'.repeat(10_000) + get('/'), answers: answered }],

  ['a declared body beyond the limit is refused, and nothing in it is seen', {
    bytes: post(`Content-Length: ${N * 30}\r\n`, CANARY.repeat(30)),
    answers: [413, LAST_ANSWER], seen: ['/read', '/last'],
  }],
  ['a chunk extension of 20,000 bytes is refused',
    { bytes: post(CHUNKED, chunk(CANARY, `${N.toString(16)};${padding(20_000)}`) + END), answers: [413] }],
  ['a chunk extension of 20,000 bytes is refused where nobody reads', {
    bytes: post(CHUNKED, chunk(CANARY, `${N.toString(16)};${padding(20_000)}`) + END, '/unread'),
    answers: [413], inPieces: [['POST /unread', 413]],
  }],
  ['a trailer of 20,000 bytes is refused',
    { bytes: post(CHUNKED, `${chunk(CANARY)}0\r\nX: ${padding(20_000)}\r\n\r\n`), answers: [431] }],
  // Node.js 20 counts header fields alone.
  [
    '2000 trailers are read or refused',
    {
      bytes: post(CHUNKED, `${chunk(CANARY)}0\r\n${fields(2000)}\r\n`),
      answers: [read(CANARY), LAST_ANSWER],
      or: [431],
    },
  ],
];
test.for(rows)('%s', ([, row]) => wire.check(row));
