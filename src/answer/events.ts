/*
 * Server-sent events: the items of an iterable as the frames that an `EventSource` reads.
 *
 * A stream ends when the application closes, and its client connects to another instance. Without that, each open
 * stream would hold up a drain until it is cut off.
 *
 * Spec: WHATWG HTML, "Server-sent events".
 */

import { isBranded, setBrand } from '../base/brand.js';
import { clearTimeout, setTimeout } from '../base/clock.js';
import { MAX_TIMEOUT_MS } from '../base/deadline.js';
import { assertOptions, isRecord, show, wholeNumber, type Kind, type Kinds } from '../base/options-check.js';
import { letFail, openStream, type Stream } from '../payload/bytes.js';
import { toJson } from '../payload/lost-members.js';
import { reply, type Reply } from './reply.js';

/** One event; a string is the data of an event without a name. */
export type EventItem =
  | string
  | {
      /** The text of the event; anything but a string is sent as JSON. */
      readonly data: unknown;
      /** The name that a page listens to. Default: `message`. */
      readonly event?: string | undefined;
      /** The `last-event-id` of a client that connects again after this event. Default: none. */
      readonly id?: string | number | undefined;
    };

/** Options of `events`. */
export interface EventsOptions {
  /**
   * Time in ms without an event after which a comment is sent, so that no proxy takes the stream for dead. Default:
   * 15,000. `false`: none.
   */
  heartbeat?: number | false | undefined;
  /** How long, in ms, a client waits before it connects again. Default: the client decides; browsers wait seconds. */
  retry?: number | undefined;
}

const HEARTBEAT = wholeNumber(1, MAX_TIMEOUT_MS);
const BEAT: Kind = {
  accepts: (value) => value === false || HEARTBEAT.accepts(value),
  give: `${HEARTBEAT.give}, in ms, or false`,
};
const EVENTS: Kinds<EventsOptions> = { heartbeat: BEAT, retry: wholeNumber(0) };

const HEADERS = {
  'content-type': 'text/event-stream',
  // Compression would hold events back until a block is full.
  'cache-control': 'no-store, no-transform',
  // nginx holds a reply back as well, until its buffer is full.
  'x-accel-buffering': 'no',
};

/**
 * A reply of server-sent events. It is read as fast as the client reads, and ends with the source, when the client
 * disconnects, and when the application closes. In the last two cases, `return` of the source's iterator is called.
 *
 * @param source an iterable of strings or `{ data, event, id }`
 * @throws {TypeError} for a source that is not an iterable, and for a wrong option
 *
 * @example
 * app.get('/orders/events', () => events(newOrders(), { retry: 1_000 }));
 */
export function events(
  source: AsyncIterable<EventItem> | Iterable<EventItem>,
  options: EventsOptions = {},
): Reply<AsyncIterable<string>, 200> {
  assertOptions('events()', options, EVENTS);
  const isIterable = typeof source === 'object' && source !== null;
  if (!isIterable || !(Symbol.asyncIterator in source || Symbol.iterator in source))
    throw new TypeError(`events() got ${show(source)}; give an iterable, such as the result of an async generator`);
  letFail(source);
  const stream = Symbol.asyncIterator in source ? source : eachOf(source);
  return reply(new EventStream(stream, options), { status: 200, headers: HEADERS });
}

/** The body of such a reply. */
class EventStream implements AsyncIterable<string> {
  /** Ends the stream; undefined until the application of the handler is known. */
  closing: AbortSignal | undefined;

  constructor(
    readonly stream: Stream,
    readonly options: EventsOptions,
  ) {}

  [Symbol.asyncIterator](): AsyncIterator<string, undefined> {
    const { closing, options } = this;
    const source = openStream(this.stream);
    let isOver = false;
    let wake = (): void => undefined;
    const leave = (): void => {
      isOver = true;
      closing?.removeEventListener('abort', end);
    };
    const end = (): void => {
      if (isOver) return;
      leave();
      source.free();
      wake();
    };
    closing?.addEventListener('abort', end);
    if (closing?.aborted === true) end();
    const frames = async function* ({ heartbeat = 15_000, retry }: EventsOptions): AsyncGenerator<string, undefined> {
      if (!isOver && retry !== undefined) yield `retry: ${retry}\n\n`;
      while (!isOver) {
        const item = source.next();
        let isSettled = false;
        const settle = (): void => {
          isSettled = true;
          wake();
        };
        item.then(settle, settle);
        while (!isSettled && !isOver) {
          let timer: NodeJS.Timeout | undefined;
          await new Promise<void>((resolve) => {
            wake = resolve;
            if (heartbeat !== false) timer = setTimeout(resolve, heartbeat);
          });
          clearTimeout(timer);
          if (!isSettled && !isOver) yield ':\n\n';
        }
        if (isOver) return;
        const { done, value } = await item;
        if (done === true) leave();
        else yield toFrame(value);
      }
    };
    const chunks = frames(options);
    // A generator's own `return` would wait for an item that may never come.
    const stop = async (): Promise<IteratorResult<string, undefined>> => {
      end();
      return { done: true, value: undefined };
    };
    return { next: () => chunks.next(), return: stop };
  }
}

setBrand(EventStream.prototype, 'EventStream');

/** Has a signal end the body of a reply if it is one of events, also of another copy of Postern. */
export function endEventsWith(closing: AbortSignal, body: unknown): void {
  if (isBranded(body, 'EventStream')) (body as EventStream).closing = closing;
}

async function* eachOf(items: Iterable<EventItem>): AsyncGenerator<EventItem> {
  yield* items;
}

/** @throws {TypeError} for an item without data, and for a name or id that would begin another line */
// { event: 'placed', data: { order: 7 } } → 'event: placed\ndata: {"order":7}\n\n'
function toFrame(item: unknown): string {
  const { data, event, id } = isRecord(item) ? item : { data: typeof item === 'string' ? item : undefined };
  if (data === undefined)
    throw new TypeError(`events() got an item without data (${show(item)}); yield a string, or { data, event, id }`);
  const text = typeof data === 'string' ? data : toJson(data);
  const lines = text.split(/\r\n|[\r\n]/).map((line) => `data: ${line}\n`);
  return `${toField('event', event)}${toField('id', id)}${lines.join('')}\n`;
}

function toField(name: string, value: unknown): string {
  if (value === undefined) return '';
  if ((typeof value === 'string' || typeof value === 'number') && !/[\r\n\0]/.test(String(value)))
    return `${name}: ${value}\n`;
  throw new TypeError(`${name} of an event is ${show(value)}; give a text without line breaks and NUL`);
}
