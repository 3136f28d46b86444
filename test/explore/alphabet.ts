/** What is explored: sequences of requests, with what a client does then, as values, as text and as bytes. */

/** Requests; a handler answers each but the last three. */
export const KINDS = [
  'get', 'head', 'short', 'long', 'chunked', 'trailers', 'closing-trailers', 'expect', 'eager', 'http10', 'keep10',
  'close', 'bad-body', 'upgrade', 'connect', 'bad-head',
] as const;
export const HANDLERS = [
  'value', 'large', 'stream', 'quick', 'failing', 'never', 'raw', 'bulk', 'held', 'destroy', 'early', 'throws', 'closes',
] as const;
export const CLIENTS = ['waits', 'half-closes', 'resets', 'drips', 'deaf'] as const;
export const PACKETS = ['one', 'several'] as const;

export type Kind = (typeof KINDS)[number];
export type Handler = (typeof HANDLERS)[number];
type ClientKind = (typeof CLIENTS)[number];
type Packets = (typeof PACKETS)[number];

/** One request; the handler is null where none is asked. */
export interface Step {
  readonly kind: Kind;
  readonly handler: Handler | null;
}

/** One connection of one client. */
export interface Sequence {
  readonly steps: readonly Step[];
  readonly client: ClientKind;
  readonly packets: Packets;
}

const isBare = (kind: Kind): boolean => kind === 'upgrade' || kind === 'connect' || kind === 'bad-head';
export const STEPS: readonly Step[] = KINDS.flatMap((kind) =>
  (isBare(kind) ? [null] : HANDLERS).map((handler): Step => ({ kind, handler })),
);

const CHUNKED: readonly Kind[] = ['chunked', 'trailers', 'closing-trailers', 'bad-body'];
const BODIES: readonly Kind[] = [...CHUNKED, 'short', 'long', 'expect', 'eager'];
export const LONG_BYTES = 100_000;
const SHORT = 'short body';
const LONG = 'b'.repeat(LONG_BYTES);

export const hasBody = ({ kind }: Step): boolean => BODIES.includes(kind);
export const methodOf = (step: Step): string =>
  step.kind === 'head' ? 'HEAD' : step.kind === 'connect' ? 'CONNECT' : hasBody(step) ? 'POST' : 'GET';
/** The body of a request as its handler reads it. */
export const bodyOf = (step: Step): string => (step.kind === 'long' ? LONG : hasBody(step) ? SHORT : '');

/** `get/never+connect one drips` */
export function format({ steps, packets, client }: Sequence): string {
  return `${steps.map(formatStep).join('+')} ${packets} ${client}`;
}

export function formatStep({ kind, handler }: Step): string {
  return handler === null ? kind : `${kind}/${handler}`;
}

/** @throws {TypeError} unless the text is that of a sequence */
export function parse(text: string): Sequence {
  const [names = '', packets, client, ...rest] = text.trim().split(/\s+/);
  const steps = names.split('+').map((name) => STEPS.find((step) => formatStep(step) === name));
  const sequence = { steps, packets, client };
  const isKnown = PACKETS.includes(packets as Packets) && CLIENTS.includes(client as ClientKind);
  if (steps.includes(undefined) || !isKnown || rest.length > 0) {
    throw new TypeError(`${JSON.stringify(text)} is not a sequence; write it as "get/never+connect one drips"`);
  }
  return sequence as Sequence;
}

/** Every sequence that begins with these requests, with what clients do then. */
export function* variants(steps: readonly Step[], packets: readonly Packets[] = PACKETS): Generator<Sequence> {
  for (const way of packets) for (const client of CLIENTS) yield { steps, packets: way, client };
}

/** All sequences of one and of two requests. */
export function* shortSequences(): Generator<Sequence> {
  for (const step of STEPS) yield* variants([step]);
  for (const first of STEPS) for (const second of STEPS) yield* variants([first, second]);
}

/** A part of a request; a client that waits for `100 Continue` does so before it sends a part that `awaits` it. */
export interface Part {
  readonly text: string;
  /** Whether it ends with bytes of a body. */
  readonly isBody?: true;
  readonly awaits?: true;
}

/**
 * The bytes of one request, in the parts that may be packets of their own.
 *
 * @param splitsHead whether its head is two parts
 */
export function partsOf(step: Step, id: string, splitsHead = false): Part[] {
  const { kind, handler } = step;
  if (kind === 'bad-head') return [{ text: 'nonsense\r\n\r\n' }];
  const fields = [`x-request-id: ${id}`];
  if (kind === 'upgrade') fields.push('Connection: upgrade', 'Upgrade: x');
  if (kind === 'close') fields.push('Connection: close');
  if (kind === 'keep10') fields.push('Connection: keep-alive');
  if (kind === 'expect' || kind === 'eager') fields.push('Expect: 100-continue');
  const body = bodyOf(step);
  if (CHUNKED.includes(kind)) fields.push('Transfer-Encoding: chunked');
  else if (body !== '') fields.push(`Content-Length: ${body.length}`);
  const version = kind === 'http10' || kind === 'keep10' ? '1.0' : '1.1';
  const line = `${methodOf(step)} ${kind === 'connect' ? 'x:1' : `/${handler ?? ''}`} HTT`;
  const rest = `P/${version}\r\nHost: x\r\n${fields.join('\r\n')}\r\n\r\n`;
  const parts: Part[] = splitsHead ? [{ text: line }, { text: rest }] : [{ text: line + rest }];
  if (CHUNKED.includes(kind)) {
    parts.push({ text: `5\r\n${body.slice(0, 5)}\r\n`, isBody: true });
    parts.push(kind === 'bad-body' ? { text: 'zz\r\n' } : { text: `5\r\n${body.slice(5)}\r\n`, isBody: true });
    const trailers = kind === 'trailers' ? 'X-Sum: 1\r\n' : kind === 'closing-trailers' ? 'Connection: close\r\n' : '';
    if (kind !== 'bad-body') parts.push({ text: `0\r\n${trailers}\r\n` });
  } else if (body !== '') {
    const half = body.length / 2;
    parts.push({ text: body.slice(0, half), isBody: true, ...(kind === 'expect' && { awaits: true }) });
    parts.push({ text: body.slice(half), isBody: true });
  }
  return parts;
}
