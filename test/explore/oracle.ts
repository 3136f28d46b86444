/** What the contract says of one connection: "Connections", "Context" (`ctx.signal`) and "Overload" (`sendTimeout`). */

import type { WireResponse } from '../support/strict-client.js';
import { bodyOf, formatStep, hasBody, LONG_BYTES } from './alphabet.js';
import type { Handler, Kind, Sequence, Step } from './alphabet.js';
import { LARGE, PROTOCOL, SEND_MS } from './program.js';
import type { Received } from './replies.js';
import type { Run, Seen } from './run.js';

/** How long, in ms, it may take until a handler is told that its client left. */
const NOTICE_MS = 500;
/** How long, in ms, a connection may stay after its last reply, or its client. */
const LINGER_MS = 2500;

const STAYS: readonly Sequence['client'][] = ['waits', 'drips'];

/** Whether a client ends its connection with this request. */
const isLast = ({ kind }: Step): boolean => LAST.includes(kind);
const LAST: readonly Kind[] = ['closing-trailers', 'http10', 'close', 'bad-body', 'upgrade', 'connect', 'bad-head'];
const readsBody = ({ handler }: Step): boolean => handler === 'value' || handler === 'large' || handler === 'stream';
/** Whether the reply has a length that is known beforehand, so that HTTP/1.0 can keep the connection. */
const hasLength = ({ handler }: Step): boolean => handler === null || !ENDLESS.includes(handler);
const ENDLESS: readonly Handler[] = ['stream', 'quick', 'raw', 'failing'];
/** Whether the handler's reply is never whole. */
const breaks = ({ kind, handler }: Step): boolean => handler === 'failing' && kind !== 'head';

/** Whether a request ends its connection after its head, so that its reply may have begun by then. */
const endsLate = ({ kind }: Step): boolean => kind === 'closing-trailers' || kind === 'bad-body';

/** Whether the reply to a request has to say `connection: close`. */
function mustClose(step: Step, { packets }: Sequence): boolean {
  if (step.handler === 'closes' || (step.kind === 'keep10' && !hasLength(step))) return true;
  return endsLate(step) ? packets === 'one' : isLast(step) && step.kind !== 'upgrade';
}

/** Whether it may: the body of its request may never come (RFC 9112, section 9.3; RFC 9110, section 10.1.1). */
function mayClose(step: Step, sequence: Sequence): boolean {
  return mustClose(step, sequence) || endsLate(step) || step.kind === 'eager' || mayBeUnread(step, sequence);
}

/** Whether the body of a request may not have come when its reply is sent, and is not read. */
function mayBeUnread(step: Step, { packets }: Sequence): boolean {
  return hasBody(step) && !readsBody(step) && (step.kind === 'expect' || packets === 'several');
}

/** @returns what is wrong with a whole reply */
function checkReply({ status, headers, body }: WireResponse, { run, index, step }: Seen): string | null {
  const { kind, handler } = step;
  const isOwn = headers['x-n'] === String(index);
  if (!isOwn && headers['x-n'] !== undefined) return 'the reply is that to another request';
  const isError = headers['x-request-id'] === `${run.id}.${index}`;
  if (kind === 'bad-head') return status === 400 ? null : `a malformed head is answered with ${status}`;
  if (kind === 'connect') return status === 501 ? null : `CONNECT is answered with ${status}`;
  if (kind === 'upgrade') return status === 101 && isOwn ? null : `an upgrade is answered with ${status}`;
  if (kind === 'bad-body' && status === 400 && !isOwn) return null;
  if (handler === 'throws') return status === 500 && (isError || isOwn) ? null : `an exception is sent as ${status}`;
  // To HTTP/1.0 a stream that fails looks like one that ends.
  const isUnseen = breaks(step) && (kind === 'http10' || kind === 'keep10');
  const isSilent = handler === 'never' || handler === 'destroy' || (breaks(step) && !isUnseen);
  if (isSilent) return `a handler without a reply is answered with ${status}`;
  if (status !== 200 || !isOwn) return `a handler's reply is sent as ${status}`;
  if (kind === 'head' || breaks(step)) return null;
  const text = handler === 'stream' ? bodyOf(step) || 'chunkchunkchunk' : handler;
  const isWhole = handler === 'large' || handler === 'bulk' ? body.equals(LARGE) : body.toString('latin1') === text;
  return isWhole ? null : 'the body is not that of the handler';
}

/** A rule that was broken, and where. */
export interface Problem {
  readonly rule: string;
  /** The request, as text; empty for the connection as a whole. */
  readonly step: string;
}

/** @returns every rule that a run broke; of a program on bare `node:http` only those on what its client got */
export function judge(run: Run, received: Received, isBare = false): Problem[] {
  const judgement = new Judgement(run, received);
  judgement.replies();
  // Whatever follows a wrong reply would be judged by the wrong request.
  if (judgement.problems.length === 0) judgement.ending();
  if (!isBare && judgement.problems.length === 0) judgement.departure();
  if (!isBare) for (const seen of run.seen) judgement.request(seen);
  return judgement.problems;
}

class Judgement {
  readonly problems: Problem[] = [];
  readonly #run: Run;
  readonly #received: Received;
  /** The reply after which nothing may follow; -1 for none. */
  #closedBy = -1;
  /** Whether bytes that nobody has to read may hide that the client left. */
  readonly #mayHide: boolean;

  constructor(run: Run, received: Received) {
    this.#run = run;
    this.#received = received;
    const unanswered = run.seen.slice(received.replies.length, run.sent);
    const isUnread = ({ step, ran }: Seen): boolean => step.kind === 'long' && (ran === 0 || !readsBody(step));
    this.#mayHide = unanswered.some(isUnread) && LONG_BYTES > 65_536;
  }

  #note(rule: string, step?: Step): void {
    this.problems.push({ rule, step: step === undefined ? '' : formatStep(step) });
  }

  /** Each reply is that to its request, and says whether the connection ends with it. */
  replies(): void {
    const { steps, seen, sequence } = this.#run;
    const { replies, malformed } = this.#received;
    if (malformed !== null) this.#note(`not well-formed (${malformed})`);
    for (const [index, reply] of replies.entries()) {
      const step = steps[index] as Step;
      const wrong = checkReply(reply, seen[index] as Seen);
      if (wrong !== null) return this.#note(wrong, step);
      const { connection } = reply.headers;
      if (this.#closedBy !== -1) return this.#note('a reply follows the last one', steps[this.#closedBy]);
      if (connection?.includes('close')) {
        this.#closedBy = index;
        if (connection !== 'close') this.#note('"connection: close" is not sent once', step);
        // Postern may close the connection instead of handing it to the other protocol.
        const mayEnd = mayClose(step, sequence) || steps[index + 1]?.kind === 'upgrade';
        if (!mayEnd) this.#note('a "connection: close" that nothing calls for', step);
      } else if (reply.status === 101 || endsLate(step)) this.#closedBy = index;
      const isOpen = this.#closedBy !== index;
      if (isOpen && mustClose(step, sequence)) this.#note('"connection: close" is not sent', step);
    }
  }

  /** A client that stays gets every reply, up to one that ends the connection or never comes. */
  ending(): void {
    const { steps, sequence, client } = this.#run;
    const { replies, ends, protocol, isPartial } = this.#received;
    const last = steps[this.#closedBy];
    if (protocol !== null && protocol !== PROTOCOL) this.#note('bytes of HTTP inside the other protocol');
    if (isPartial && last !== undefined) this.#note('bytes follow the last reply', last);
    const getsAll = sequence.client === 'deaf' ? client.heldAt === null : STAYS.includes(sequence.client);
    if (!getsAll) return;
    const hasEnded = client.endedAt !== null && !client.leftFirst;
    const next = steps[replies.length];
    const before = steps[replies.length - 1];
    const mayEnd = before !== undefined && !hasLength(before) && mayBeUnread(before, sequence);
    if (last !== undefined) {
      const endedIn = (client.endedAt ?? Infinity) - client.markAt(ends[this.#closedBy] as number);
      if (protocol === null && endedIn > LINGER_MS) this.#note('the connection stays after the last reply', last);
    } else if (mayEnd && hasEnded) {
      // The head of a stream is sent before it is known whether the handler reads the body.
    } else if (next === undefined) {
      if (sequence.client === 'waits' && !hasEnded) this.#note('an idle connection is not closed');
    } else if (next.kind === 'upgrade' || next.kind === 'bad-body' || next.handler === 'destroy' || breaks(next)) {
      if (!hasEnded) this.#note('the connection is not ended', next);
    } else if (isPartial) this.#note('a reply stops in the middle', next);
    else if (next.handler !== 'never') this.#note('a request is not answered', next);
    else if (hasEnded) this.#note('the connection ends while a handler runs', next);
  }

  /** A client that left, and one that reads nothing, is noticed. */
  departure(): void {
    const { client } = this.#run;
    if (this.#mayHide) return;
    const closedAt = client.socket.closedAt ?? Infinity;
    if (closedAt > (client.leftAt ?? Infinity) + LINGER_MS) this.#note('the connection stays after its client');
    if (closedAt > (client.heldAt ?? Infinity) + SEND_MS * 2) this.#note('a client that reads nothing is not cut');
  }

  /** Each request runs at most once, in its own async context, and leaves nothing behind. */
  request(seen: Seen): void {
    const { index, step, ran, emitted, logged, foreign, faults, sources } = seen;
    const { steps, client } = this.#run;
    const last = steps.findIndex(isLast);
    if (ran > 1) this.#note('a handler runs twice', step);
    if (ran > 0 && last !== -1 && index > last) this.#note('a handler runs after the last request', steps[last]);
    const closedAt = this.#closedBy === -1 ? Infinity : client.markAt(this.#received.ends[this.#closedBy] as number);
    const isLate = index > this.#closedBy && seen.ranAt > closedAt;
    if (isLate) this.#note('a handler runs after the last reply', step);
    if (sources > 0 && !this.#mayHide) this.#note('the source of a reply is not freed', step);
    for (const rule of faults) this.#note(rule, step);
    for (const place of new Set(foreign)) this.#note(`foreign async context (${place})`);
    if (logged.length !== emitted && !this.#mayHide) this.#note(`${logged.length} lines in the access log`, step);
    if (ran > 0 && step.kind !== 'upgrade') this.#signal(seen);
  }

  /** `ctx.signal` aborts if, and only if, nobody can get the reply. */
  #signal({ index, step, abortedAt, res }: Seen): void {
    const { client, sequence } = this.#run;
    const { ends } = this.#received;
    // What the handler itself breaks off may abort its signal or not.
    if (step.kind === 'bad-body' || step.handler === 'destroy' || breaks(step)) return;
    const end = ends[index];
    if (end !== undefined) {
      // A client that resets the connection, or reads nothing, may not have got what was sent.
      const isLost = (client.isReset && (client.leftAt ?? 0) <= client.markAt(end)) || sequence.client === 'deaf';
      if (abortedAt !== null && !isLost) this.#note('ctx.signal aborts although the reply is complete', step);
    } else if (abortedAt === null) {
      // For node:http a reply that its handler has ended is finished when its socket is destroyed, too.
      const isByHand = step.handler === 'raw' || step.handler === 'bulk' || step.handler === 'held';
      const isCut = client.heldAt !== null && index === ends.length && !isByHand;
      const isSent = !isCut && (res?.writableFinished || (client.isReset && res?.writableEnded));
      if (!this.#mayHide && isSent !== true) this.#note('ctx.signal does not abort', step);
    } else {
      const goneAt = Math.min(client.leftAt ?? Infinity, client.endedAt ?? Infinity);
      const isLate = abortedAt > (client.leftAt ?? Infinity) + NOTICE_MS && !this.#mayHide;
      if (isLate) this.#note('ctx.signal aborts late', step);
      const isEarly = abortedAt < goneAt && this.#closedBy === -1;
      if (isEarly) this.#note('ctx.signal aborts although the client is there', step);
    }
  }
}
