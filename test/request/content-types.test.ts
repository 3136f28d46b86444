/** Advisories about content types: a body passes for what it is, and for nothing else. */

import { expect, test } from 'vitest';
import { FORM, answerTo, createReading, post } from '../support/bodies.js';
import { serve } from '../support/serve.js';

/** Content types as sent, and which reader takes them: never both, or a body could pass for what it is not. */
const TYPES: readonly (readonly [headers: readonly string[], reader: 'json' | 'form' | null])[] = [
  [['application/json;'], 'json'],
  [['\tapplication/json'], 'json'],
  [['\t application/json \t'], 'json'],
  [['application/json\t;x'], 'json'],
  [['application/json ;charset=utf-8'], 'json'],
  [['application/json; charset="utf-8"'], 'json'],
  [['application/json;application/x-www-form-urlencoded'], 'json'],
  [['APPLICATION/JSON;='], 'json'],
  [['application/problem+json;,'], 'json'],
  [[`${FORM}\t;charset=utf-8`], 'form'],
  [['Application/X-WWW-Form-URLencoded ;'], 'form'],
  [[`${FORM};application/json`], 'form'],
  [['application/json', 'text/plain'], 'json'],
  [['text/plain', 'application/json'], null],
  [[FORM, 'application/json'], 'form'],
  [['application/json', FORM], 'json'],
  [['application/json,text/plain'], null],
  [['application/json, application/json'], null],
  [[`application/json,${FORM}`], null],
  [['text/plain;application/json'], null],
  [[';application/json'], null],
  [['application/json/x'], null],
  [['application/ json'], null],
  [['application /json'], null],
  [['application/json x'], null],
  [['application/json\xa0'], null],
  [['\xa0application/json'], null],
  [['application/json\x85;x'], null],
  [['application\\json'], null],
  [['"application/json"'], null],
  [['application/json+xml'], null],
  [['application/+json'], null],
  [['multipart/form-data; boundary=application/json'], null],
  [['json'], null],
  [['*/*'], null],
  [[''], null],
];

test.for(TYPES)(
  'a body of type %j is taken by %s, and by no other parser (CVE-2025-32442, CVE-2026-25223)',
  async ([headers, reader]) => {
    const { app, got } = createReading();
    const { port } = await serve(app);
    const lines = headers.map((header) => `Content-Type: ${header}\r\n`).join('');
    for (const name of ['json', 'form']) {
      const { status } = await answerTo(port, post(`/${name}`, `${lines}Content-Length: 7\r\n`, '{"a":1}'));
      expect([name, status]).toEqual([name, name === reader ? 200 : 415]);
    }
    expect(got).toEqual(reader === null ? [] : [reader]);
  },
);
