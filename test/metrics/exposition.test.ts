import { expect, test } from 'vitest';
import { Registry } from 'postern/metrics';
import { parseExposition } from '../support/exposition-parser.js';

const VALUES: readonly { readonly value: number; readonly text: string }[] = [
  { value: 0, text: '0.0' },
  { value: -0, text: '0.0' },
  { value: 1, text: '1.0' },
  { value: -1, text: '-1.0' },
  { value: 9, text: '9.0' },
  { value: 10, text: '10.0' },
  { value: 99, text: '99.0' },
  { value: 100, text: '100.0' },
  { value: 1_234_567_890, text: '1234567890.0' },
  { value: 2_147_483_647, text: '2147483647.0' },
  { value: 2_147_483_648, text: '2147483648.0' },
  { value: 9_007_199_254_740_991, text: '9007199254740991.0' },
  { value: 1e20, text: '100000000000000000000.0' },
  { value: 1e21, text: '1e+21' },
  { value: Number.MAX_VALUE, text: '1.7976931348623157e+308' },
  { value: Number.MIN_VALUE, text: '5e-324' },
  { value: 1e-7, text: '1e-7' },
  { value: 0.1, text: '0.1' },
  { value: 1_700_000_000.25, text: '1700000000.25' },
  { value: NaN, text: 'NaN' },
  { value: Infinity, text: '+Inf' },
  { value: -Infinity, text: '-Inf' },
];

test.for(VALUES)('the value $value is written as $text', ({ value, text }) => {
  const registry = new Registry();
  registry.gauge({ name: 'size', help: 'A size.' }).set(value);
  expect(registry.expose()).toBe(`# HELP size A size.\n# TYPE size gauge\nsize ${text}\n`);
  expect(registry.expose('openmetrics')).toBe(`# HELP size A size.\n# TYPE size gauge\nsize ${text}\n# EOF\n`);
});

const LABELS: readonly { readonly value: string | number; readonly text: string }[] = [
  { value: '', text: '""' },
  { value: 'plain', text: '"plain"' },
  { value: 200, text: '"200"' },
  { value: 1.5, text: '"1.5"' },
  { value: 'a"b', text: '"a\\"b"' },
  { value: 'a\\b', text: '"a\\\\b"' },
  { value: 'a\nb', text: '"a\\nb"' },
  { value: 'a\\nb', text: '"a\\\\nb"' },
  { value: '{}=,# ', text: '"{}=,# "' },
  { value: 'Zoë 漢 🦊', text: '"Zoë 漢 🦊"' },
];

test.for(LABELS)('the label value $value is written as $text', ({ value, text }) => {
  const registry = new Registry();
  registry.gauge({ name: 'size', help: 'A size.', labelNames: ['of'] }).set({ of: value }, 1);
  for (const format of ['text', 'openmetrics'] as const) {
    expect(registry.expose(format)).toContain(`\nsize{of=${text}} 1.0\n`);
  }
});

test('help escapes backslash and line end, and quotes in OpenMetrics alone', () => {
  const registry = new Registry();
  registry.gauge({ name: 'size', help: 'A "size"\nin C:\\temp.' });
  expect(registry.expose()).toContain('# HELP size A "size"\\nin C:\\\\temp.\n');
  expect(registry.expose('openmetrics')).toContain('# HELP size A \\"size\\"\\nin C:\\\\temp.\n');
});

test('an empty registry is an empty text, and the end mark alone in OpenMetrics', () => {
  expect(new Registry().expose()).toBe('');
  expect(new Registry().expose('openmetrics')).toBe('# EOF\n');
});

test('content types are exactly those of the formats', () => {
  const registry = new Registry();
  expect(registry.contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(registry.contentTypeOf('text')).toBe(registry.contentType);
  expect(registry.contentTypeOf('openmetrics')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
});

test('a counter has its _total on the sample but not on the family of OpenMetrics', () => {
  const registry = new Registry();
  registry.counter({ name: 'jobs_total', help: 'Jobs.' }).inc(2);
  registry.counter({ name: 'runs', help: 'Runs.' }).inc();
  expect(registry.expose()).toBe(
    '# HELP jobs_total Jobs.\n# TYPE jobs_total counter\njobs_total 2.0\n# HELP runs Runs.\n# TYPE runs counter\nruns 1.0\n',
  );
  expect(registry.expose('openmetrics')).toBe(
    '# HELP jobs Jobs.\n# TYPE jobs counter\njobs_total 2.0\n# HELP runs Runs.\n# TYPE runs counter\nruns_total 1.0\n# EOF\n',
  );
});

test('a histogram is written with cumulative buckets, float bounds, sum and count', () => {
  const registry = new Registry();
  const histogram = registry.histogram({
    name: 'seconds',
    help: 'Seconds.',
    labelNames: ['of'],
    buckets: [0.5, 1, 500],
  });
  for (const value of [0.1, 0.5, 0.7, 2, 1000]) histogram.observe({ of: 'x' }, value);
  expect(registry.expose()).toBe(
    '# HELP seconds Seconds.\n# TYPE seconds histogram\n' +
      'seconds_bucket{of="x",le="0.5"} 2.0\nseconds_bucket{of="x",le="1.0"} 3.0\nseconds_bucket{of="x",le="500.0"} 4.0\nseconds_bucket{of="x",le="+Inf"} 5.0\n' +
      'seconds_sum{of="x"} 1003.3\nseconds_count{of="x"} 5.0\n',
  );
});

test('a histogram without labels has le alone', () => {
  const registry = new Registry();
  registry.histogram({ name: 'seconds', help: 'Seconds.', buckets: [1] }).observe(1);
  expect(registry.expose()).toContain(
    '\nseconds_bucket{le="1.0"} 1.0\nseconds_bucket{le="+Inf"} 1.0\nseconds_sum 1.0\nseconds_count 1.0\n',
  );
});

test('a labelled metric without series shows its help and type', () => {
  const registry = new Registry();
  registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue'] });
  expect(registry.expose()).toBe('# HELP jobs_total Jobs.\n# TYPE jobs_total counter\n');
});

test('a text of many megabytes reads back, long labels included', () => {
  const registry = new Registry();
  const histogram = registry.histogram({ name: 'seconds', help: 'Seconds.', labelNames: ['of'], buckets: [1, 2, 3] });
  for (let index = 0; index < 500; index++) histogram.observe({ of: `${index}-${'é'.repeat(index * 4)}` }, 2);
  histogram.observe({ of: 'x'.repeat(200_000) }, 2);
  const [family] = parseExposition(registry.expose(), 'text');
  expect(family?.samples.length).toBe(501 * 6);
  expect(family?.samples.at(-1)?.labels['of']).toBe('x'.repeat(200_000));
});

test('exemplars on each of many buckets read back, however long the lines', () => {
  const registry = new Registry();
  const buckets = Array.from({ length: 600 }, (_, index) => index + 1);
  const histogram = registry.histogram({ name: 'seconds', help: 'Seconds.', labelNames: ['of'], buckets });
  const sets = ['a', 'b', 'c', 'd', 'e'.repeat(3000)];
  for (const of of sets) {
    for (const value of buckets)
      histogram.observe({ labels: { of }, value, exemplarLabels: { trace_id: `${value}-${'é'.repeat(100)}` } });
  }
  const samples = parseExposition(registry.expose('openmetrics'), 'openmetrics')[0]?.samples ?? [];
  expect(samples.length).toBe(sets.length * 603);
  samples.forEach(({ labels, value, exemplar }, index) => {
    const bucket = index % 603;
    expect(labels['of']).toBe(sets[Math.floor(index / 603)]);
    if (bucket >= 600) return;
    expect(value).toBe(bucket + 1);
    expect(exemplar?.labels['trace_id']).toBe(`${value}-${'é'.repeat(100)}`);
  });
});

test('a non-ASCII series may be removed and come back', () => {
  const registry = new Registry();
  const gauge = registry.gauge({ name: 'size', help: 'A size.', labelNames: ['of'] });
  gauge.set({ of: 'é' }, 1);
  expect(registry.expose()).toContain('size{of="é"} 1.0');
  gauge.remove({ of: 'é' });
  gauge.set({ of: 'e' }, 2);
  expect(registry.expose()).toContain('size{of="e"} 2.0');
  gauge.set({ of: 'é' }, 3);
  expect(registry.expose()).toContain('size{of="é"} 3.0');
});
