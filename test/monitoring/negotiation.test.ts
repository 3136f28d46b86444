import { expect, test } from 'vitest';
import { acceptsGzip, negotiateFormat } from '../../src/monitor/metrics-text.js';

const PROMETHEUS_2 =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
const PROMETHEUS_3 =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,' +
  'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';

const ACCEPTS: readonly { readonly accept: string | undefined; readonly format: 'text' | 'openmetrics' }[] = [
  { accept: undefined, format: 'text' },
  { accept: '', format: 'text' },
  { accept: '*/*', format: 'text' },
  { accept: 'text/*', format: 'text' },
  { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', format: 'text' },
  { accept: 'application/json', format: 'text' },
  { accept: 'image/png', format: 'text' },
  { accept: 'application/json;q=0.9, */*;q=0.1', format: 'text' },
  { accept: 'text/plain', format: 'text' },
  { accept: 'text/plain;version=0.0.4', format: 'text' },
  { accept: PROMETHEUS_2, format: 'openmetrics' },
  { accept: PROMETHEUS_3, format: 'openmetrics' },
  { accept: 'application/openmetrics-text', format: 'openmetrics' },
  { accept: 'APPLICATION/OpenMetrics-Text; Version=1.0.0', format: 'openmetrics' },
  { accept: 'application/openmetrics-text; version="1.0.0"; charset=utf-8', format: 'openmetrics' },
  { accept: 'application/openmetrics-text;version=0.0.1', format: 'openmetrics' },
  { accept: 'application/openmetrics-text;version=2.0.0', format: 'text' },
  { accept: 'application/openmetrics-text;version=2.0.0, application/openmetrics-text;version=1.0.0;q=0.2',
    format: 'openmetrics' },
  { accept: 'application/openmetrics-text;q=0.5,text/plain;q=0.6', format: 'text' },
  { accept: 'application/openmetrics-text;q=0.6,text/plain;q=0.5', format: 'openmetrics' },
  { accept: 'text/plain;q=0.5,application/openmetrics-text;q=0.501', format: 'openmetrics' },
  { accept: 'application/openmetrics-text,text/plain', format: 'openmetrics' },
  { accept: 'text/plain,application/openmetrics-text', format: 'text' },
  { accept: 'application/openmetrics-text,*/*', format: 'openmetrics' },
  { accept: '*/*,application/openmetrics-text', format: 'openmetrics' },
  { accept: 'application/openmetrics-text;q=0.5,*/*', format: 'text' },
  { accept: 'application/openmetrics-text;q=0', format: 'text' },
  { accept: 'application/openmetrics-text;q=0,text/plain;q=0', format: 'text' },
  { accept: 'application/openmetrics-text;q=0,*/*', format: 'text' },
  { accept: 'text/plain;q=0,*/*', format: 'openmetrics' },
  { accept: 'application/*;q=0.9,text/plain;q=0.5', format: 'openmetrics' },
  { accept: 'application/openmetrics-text;q=2', format: 'text' },
  { accept: 'application/openmetrics-text;q=abc', format: 'text' },
  { accept: 'application/openmetrics-text;q=', format: 'text' },
  { accept: ' application/openmetrics-text ; version=1.0.0 ; q=0.9 , text/plain ; q=0.1 ', format: 'openmetrics' },
  { accept: 'text/plain;note="a,application/openmetrics-text"', format: 'text' },
  { accept: ',,;;,=', format: 'text' },
];

test.for(ACCEPTS)('Accept "$accept" is answered as $format', ({ accept, format }) => {
  expect(negotiateFormat(accept)).toBe(format);
});

const ENCODINGS: readonly { readonly encoding: string | undefined; readonly gzip: boolean }[] = [
  { encoding: undefined, gzip: false },
  { encoding: '', gzip: false },
  { encoding: 'gzip', gzip: true },
  { encoding: 'GZIP', gzip: true },
  { encoding: 'x-gzip', gzip: true },
  { encoding: 'gzip, deflate, br', gzip: true },
  { encoding: 'br;q=1.0, gzip;q=0.001', gzip: true },
  { encoding: 'gzip;q=0', gzip: false },
  { encoding: 'gzip;q=0.000', gzip: false },
  { encoding: 'identity', gzip: false },
  { encoding: 'identity;q=1, gzip;q=0.5', gzip: false },
  { encoding: 'identity;q=0.5, gzip', gzip: true },
  { encoding: 'deflate', gzip: false },
  { encoding: '*', gzip: false },
  { encoding: 'gzip;q=nonsense', gzip: false },
  { encoding: 'gzipped', gzip: false },
];

test.for(ENCODINGS)('Accept-Encoding "$encoding" means gzip: $gzip', ({ encoding, gzip }) => {
  expect(acceptsGzip(encoding)).toBe(gzip);
});

const HOSTILE = [',', ';', '"', '\\', '=', ' ', 'a', ';q=', '*/*,', '"\\', 'a;b="', 'text/plain;q=0.1,'];

test.for(HOSTILE)('a header of 16 KiB of %j is answered', (piece) => {
  const header = piece.repeat(Math.ceil(16_384 / piece.length));
  expect(negotiateFormat(header)).toBe('text');
  expect(acceptsGzip(header)).toBe(false);
  expect(negotiateFormat(`application/openmetrics-text,${header}`)).toBe('openmetrics');
});
