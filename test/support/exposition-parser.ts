/**
 * A strict reader of Prometheus text 0.0.4 and OpenMetrics text 1.0: whatever a parser might refuse, this one does.
 */

export interface ParsedExemplar {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly timestamp: number | undefined;
}

export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly exemplar: ParsedExemplar | undefined;
}

export interface ParsedFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly ParsedSample[];
}

/** @throws {Error} with the line at fault, at the first thing that isn't as the format has it */
export function parseExposition(text: string, format: 'text' | 'openmetrics'): ParsedFamily[] {
  const isOpenMetrics = format === 'openmetrics';
  if (text === '' && !isOpenMetrics) return [];
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const lines = text.slice(0, -1).split('\n');
  if (isOpenMetrics && lines.pop() !== '# EOF') throw new Error('the last line is not "# EOF"');
  const families: (ParsedFamily & { samples: ParsedSample[] })[] = [];
  for (let index = 0; index < lines.length; ) {
    const help = parseHelp(lines[index++]!, isOpenMetrics);
    const [, typeName, type] =
      /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(lines[index++] ?? '') ?? fail(lines[index - 1]);
    if (typeName !== help.name) throw new Error(`TYPE of ${typeName} follows HELP of ${help.name}`);
    const family = { name: help.name, help: help.text, type: type!, samples: [] as ParsedSample[] };
    while (index < lines.length && !lines[index]!.startsWith('#')) {
      const sample = new LineReader(lines[index++]!).sample(isOpenMetrics);
      assertBelongs(sample, family, isOpenMetrics);
      family.samples.push(sample);
    }
    families.push(family);
  }
  assertUnique(families.map(({ name }) => name), 'family');
  assertUnique(
    families.flatMap(({ samples }) =>
      samples.map(({ name, labels }) => `${name} ${JSON.stringify(Object.entries(labels).sort())}`),
    ),
    'series',
  );
  for (const family of families) {
    if (family.type === 'histogram') assertHistogram(family, isOpenMetrics);
    if (family.type === 'summary') assertSummary(family, isOpenMetrics);
    if (isOpenMetrics) assertCounterLike(family);
  }
  return families;
}

/** All samples as `name{labels}` → value, for assertions on a few of them. */
export function sampleMap(text: string, format: 'text' | 'openmetrics' = 'text'): Map<string, number> {
  const pairs = parseExposition(text, format).flatMap(({ samples }) =>
    samples.map(({ name, labels, value }): [string, number] => {
      const inner = Object.entries(labels).map(([label, of]) => `${label}=${of}`).join(',');
      return [inner === '' ? name : `${name}{${inner}}`, value];
    }),
  );
  return new Map(pairs);
}

const METRIC_NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;
const LABEL_NAME = /[a-zA-Z_][a-zA-Z0-9_]*/y;
const NUMBER = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?Inf|NaN/y;

class LineReader {
  readonly #line: string;
  #at = 0;

  constructor(line: string) {
    this.#line = line;
  }

  sample(isOpenMetrics: boolean): ParsedSample {
    const name = this.#match(METRIC_NAME);
    const labels = this.#peek('{') ? this.#labels() : {};
    this.#expect(' ');
    const value = this.#number();
    const exemplar = isOpenMetrics && this.#peek(' ') ? this.#exemplar() : undefined;
    if (this.#at !== this.#line.length) fail(this.#line);
    return { name, labels, value, exemplar };
  }

  #exemplar(): ParsedExemplar {
    this.#expect(' # ');
    const labels = this.#labels();
    const length = Object.entries(labels).reduce((sum, [name, value]) => sum + [...name].length + [...value].length, 0);
    if (length > 128) throw new Error(`exemplar with ${length} characters: ${this.#line}`);
    this.#expect(' ');
    const value = this.#number();
    if (!this.#peek(' ')) return { labels, value, timestamp: undefined };
    this.#expect(' ');
    return { labels, value, timestamp: this.#number() };
  }

  #labels(): Record<string, string> {
    const labels: Record<string, string> = {};
    this.#expect('{');
    while (!this.#peek('}')) {
      if (Object.keys(labels).length > 0) this.#expect(',');
      const name = this.#match(LABEL_NAME);
      if (Object.hasOwn(labels, name)) throw new Error(`label "${name}" twice: ${this.#line}`);
      this.#expect('="');
      let raw = '';
      while (!this.#peek('"')) {
        const character = this.#line[this.#at] ?? fail(this.#line);
        const escaped = character === '\\' ? this.#line.slice(this.#at, this.#at + 2) : character;
        raw += escaped;
        this.#at += escaped.length;
      }
      this.#expect('"');
      labels[name] = unescape(raw, /[\\n"]/);
    }
    this.#expect('}');
    return labels;
  }

  #number(): number {
    const text = this.#match(NUMBER);
    if (/^[+-]?\d+$/.test(text)) throw new Error(`integer "${text}" is not a float: ${this.#line}`);
    return toNumber(text);
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [text] = pattern.exec(this.#line) ?? fail(this.#line);
    this.#at += text.length;
    return text;
  }

  #peek(text: string): boolean {
    return this.#line.startsWith(text, this.#at);
  }

  #expect(text: string): void {
    if (!this.#peek(text)) fail(this.#line);
    this.#at += text.length;
  }
}

function parseHelp(line: string, isOpenMetrics: boolean): { readonly name: string; readonly text: string } {
  const [, name, raw] = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ([^\n]+)$/.exec(line) ?? fail(line);
  if (isOpenMetrics && /(?<!\\)(?:\\\\)*"/.test(raw!)) throw new Error(`quote not escaped: ${line}`);
  return { name: name!, text: unescape(raw!, isOpenMetrics ? /[\\n"]/ : /[\\n]/) };
}

function unescape(raw: string, allowed: RegExp): string {
  return raw.replace(/\\(.?)/gs, (_, character: string) => {
    if (!allowed.test(character)) throw new Error(`invalid escape \\${character} in ${raw}`);
    return character === 'n' ? '\n' : character;
  });
}

function toNumber(text: string): number {
  if (text === 'NaN') return NaN;
  return text.endsWith('Inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text);
}

const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
  gauge: [''],
  counter: [''],
};

function assertBelongs({ name, labels, exemplar }: ParsedSample, family: ParsedFamily, isOpenMetrics: boolean): void {
  const suffixes = isOpenMetrics && family.type === 'counter' ? ['_total'] : SUFFIXES[family.type]!;
  if (!suffixes.some((suffix) => name === family.name + suffix))
    throw new Error(`sample ${name} is not of the ${family.type} ${family.name}`);
  if (exemplar !== undefined && !/_(?:bucket|total)$/.test(name)) throw new Error(`exemplar on ${name}`);
  if (name.endsWith('_bucket') && family.type === 'histogram' && labels['le'] === undefined)
    throw new Error(`bucket of ${family.name} without le`);
}

function assertHistogram({ name, samples }: ParsedFamily, isOpenMetrics: boolean): void {
  const groups = new Map<string, ParsedSample[]>();
  for (const sample of samples) {
    const { le: _, ...rest } = sample.labels;
    const key = JSON.stringify(rest);
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  for (const [key, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => toNumber(labels['le']!));
    for (let index = 1; index < buckets.length; index++) {
      if (bounds[index]! <= bounds[index - 1]! || buckets[index]!.value < buckets[index - 1]!.value)
        throw new Error(`buckets of ${name} ${key} don't ascend`);
    }
    const count = group.filter((sample) => sample.name === `${name}_count`);
    const sum = group.filter((sample) => sample.name === `${name}_sum`);
    // OpenMetrics: a sum only where nothing negative is observed, and a count if and only if there is a sum.
    const hasSum = !isOpenMetrics || sum.length > 0;
    if (isOpenMetrics && hasSum && bounds[0]! < 0)
      throw new Error(`histogram ${name} ${key} has a sum beside negative buckets`);
    if (
      count.length !== Number(hasSum) ||
      sum.length !== Number(hasSum) ||
      bounds.at(-1) !== Infinity ||
      (hasSum && buckets.at(-1)!.value !== count[0]!.value)
    ) {
      throw new Error(`histogram ${name} ${key} is not whole`);
    }
  }
}

function assertSummary({ name, samples }: ParsedFamily, isOpenMetrics: boolean): void {
  for (const sample of samples.filter((one) => one.name === name)) {
    const quantile = toNumber(sample.labels['quantile'] ?? 'NaN');
    if (!(quantile >= 0 && quantile <= 1)) throw new Error(`quantile ${sample.labels['quantile']} of ${name}`);
    if (isOpenMetrics && sample.value < 0) throw new Error(`negative quantile of ${name}`);
  }
}

function assertCounterLike({ name, type, samples }: ParsedFamily): void {
  for (const sample of samples) {
    const isCounterLike = type !== 'gauge' && sample.name !== name;
    if (isCounterLike && !(sample.value >= 0)) throw new Error(`${sample.name} is ${sample.value}`);
  }
}

function assertUnique(names: readonly string[], what: string): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) throw new Error(`${what} ${name} twice`);
    seen.add(name);
  }
}

function fail(line: string | undefined): never {
  throw new Error(`not a line of the format: ${line}`);
}
