/** What the compiler lets pass of `postern/metrics`, and what it stops; compiled, never run. */
import {
  collectDefaultMetrics, Counter, Registry, type AnyMetric, type BoundCounter, type Gauge, type Histogram,
} from 'postern/metrics';

const registry = new Registry({ maxSeries: 100, onError: (name: string, error: unknown) => void [name, error] });

const bare: Counter = registry.counter({ name: 'a_total', help: 'A.' });
bare.inc();
bare.inc(2);
bare.inc({}, 2);
bare.inc({ value: 2, exemplarLabels: { trace_id: 'x' } });
// @ts-expect-error it has no labels
bare.inc({ queue: 'mail' });
// @ts-expect-error a text is no number
bare.inc('2');

const jobs: Counter<'queue' | 'host'> = registry.counter({
  name: 'jobs_total',
  help: 'Jobs.',
  labelNames: ['queue', 'host'],
});
jobs.inc({ queue: 'mail', host: 7 });
jobs.inc({ queue: 'mail', host: 'h' }, 3);
jobs.inc({ labels: { queue: 'mail', host: 'h' }, value: 3, exemplarLabels: { trace_id: 'x' } });
const mail: BoundCounter = jobs.labels({ queue: 'mail', host: 'h' });
mail.inc();
mail.inc({ value: 2, exemplarLabels: { trace_id: 'x' } });
jobs.labels('mail', 'h').inc(2);
jobs.remove({ queue: 'mail', host: 'h' });
jobs.reset();
// @ts-expect-error labels are missing
jobs.inc();
// @ts-expect-error labels are missing
jobs.inc(3);
// @ts-expect-error host is missing
jobs.inc({ queue: 'mail' });
// @ts-expect-error a misspelt label
jobs.inc({ queue: 'mail', hots: 'h' });
// @ts-expect-error one label too many
jobs.inc({ queue: 'mail', host: 'h', extra: 'x' });
// @ts-expect-error a boolean is no label value
jobs.inc({ queue: true, host: 'h' });
// @ts-expect-error host is missing
jobs.labels({ queue: 'mail' });
// @ts-expect-error host is missing in the object form
jobs.inc({ labels: { queue: 'mail' }, value: 3 });
// @ts-expect-error the value is the counter's own
mail.value = 3;
// @ts-expect-error a counter can't be set
jobs.set({ queue: 'mail', host: 'h' }, 3);

const size: Gauge<'of'> = registry.gauge({
  name: 'size_bytes',
  help: 'Sizes.',
  labelNames: ['of'],
  collect() {
    this.set({ of: 'x' }, 1);
    // @ts-expect-error a misspelt label
    this.set({ off: 'x' }, 1);
  },
});
size.set({ of: 'x' }, 1);
size.inc({ of: 'x' });
size.dec({ of: 'x' }, 2);
size.setToCurrentTime({ of: 'x' });
const seconds: number = size.startTimer({ of: 'x' })();
size.startTimer()({ of: 'x' });
// @ts-expect-error a value is missing
size.set({ of: 'x' });
// @ts-expect-error labels are missing
size.setToCurrentTime();
// @ts-expect-error a misspelt label
size.startTimer({ off: 'x' });

const latency: Histogram<'route'> = registry.histogram({
  name: 'latency_seconds',
  help: 'Latency.',
  labelNames: ['route'],
  buckets: [0.1, 1],
});
latency.observe({ route: '/' }, seconds);
latency.observe({ labels: { route: '/' }, value: 1, exemplarLabels: { trace_id: 'x' } });
latency.labels({ route: '/' }).observe(1);
latency.startTimer()({ route: '/' }, { trace_id: 'x' });
latency.zero({ route: '/' });
// @ts-expect-error a value is missing
latency.observe({ route: '/' });
// @ts-expect-error labels are missing
latency.observe(1);
// @ts-expect-error an observation needs its value
latency.observe({ labels: { route: '/' } });

const dynamic: string[] = ['queue'];
const loose: Counter<string> = registry.counter({ name: 'loose_total', help: 'Loose.', labelNames: dynamic });
loose.inc({ queue: 'mail' });

const found: AnyMetric | undefined = registry.get('jobs_total');
if (found instanceof Counter) found.inc({ queue: 'mail', host: 'h' });
// @ts-expect-error it may not be there
found.reset();

// @ts-expect-error help is missing
registry.counter({ name: 'b_total' });
// @ts-expect-error buckets are a histogram's
registry.gauge({ name: 'c', help: 'C.', buckets: [1] });
registry.expose('openmetrics');
// @ts-expect-error there is no such format
registry.expose('json');
// @ts-expect-error the content type is the format's
registry.contentType = 'text/plain';

registry.gauge({ name: 'd', help: 'D.', collect: undefined, labelNames: undefined });
collectDefaultMetrics(registry, { prefix: undefined, labels: undefined });
collectDefaultMetrics(registry, { labels: { shard: 7, zone: 'a' } });
// @ts-expect-error a boolean is no label value
collectDefaultMetrics(registry, { labels: { shard: true } });
