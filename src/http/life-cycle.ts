/*
 * The states of the reply to one request, of the request's body, and of the connection that carries both (RFC 9112,
 * section 9), each as a table of events. An event that a row does not name changes nothing in that state.
 *
 * One connection has one list of exchanges, in the order of their requests. An exchange is in the list until its reply
 * is handed to the socket as a whole and its body is here, or will never be.
 */

/** For each state the events that end it, and the state after each. */
type Table<State extends string, Event extends string> = {
  readonly [Name in State]: Readonly<Partial<Record<Event, State>>>;
};

/** The reply of one request. */
export type ReplyState = 'waiting' | 'running' | 'queued' | 'sending' | 'left' | 'sent' | 'over';

/**
 * - `run`: the handler is called.
 * - `queue`: the reply is known.
 * - `write`: its head is written by Postern, or the rest of it is left to the handler (`ctx.raw`, a mount).
 * - `end`: the whole reply is handed to the socket.
 * - `fail`: its head could not be written; another reply may take its place.
 * - `leave`: nobody can receive the reply any more: FIN, RST, a timer, or an earlier reply that ended the connection.
 * - `stop`: nothing waits for the handler any more: it has ended, or the application closes.
 */
export type ReplyEvent = 'run' | 'queue' | 'write' | 'end' | 'fail' | 'leave' | 'stop';

export const REPLY: Table<ReplyState, ReplyEvent> = {
  // Requests over `maxPipelinedRequests` wait, and requests whose body comes with the next bytes of the same packet. A
  // malformed body is answered in the handler's place (RFC 9112, section 2.2).
  waiting: { run: 'running', queue: 'queued', leave: 'over' },
  // The handler has not answered. When its client disconnects it continues, and counts as active until it ends.
  running: { queue: 'queued', write: 'sending', leave: 'left' },
  // Replies are sent in the order of the requests (RFC 9112, section 9.3.2), and usually together at the end of a
  // turn of the event loop. Until then an error of the connection may take this reply's place.
  queued: { write: 'sending', leave: 'over' },
  // A reply is written once. What fails after its head is answered by closing the connection (section 8).
  sending: { end: 'sent', fail: 'running', leave: 'over' },
  // The client has disconnected; the handler still runs.
  left: { stop: 'over' },
  // The reply is the socket's. `ctx.signal` of this request never aborts any more.
  sent: {},
  // Nobody received the reply, or not the whole of it.
  over: {},
};

/** The body of one request, until node:http has parsed its end. */
export type BodyState = 'unread' | 'read' | 'dropped' | 'left' | 'broken';

/**
 * - `read`: the handler asks for it; a client that waits for `100 Continue` is told to send.
 * - `drop`: the request is answered; the rest is read and dropped, so that a disconnect is noticed.
 * - `breakOff`: a chunk is malformed, the client has half-closed, or the time is up: the rest never comes.
 */
export type BodyEvent = 'read' | 'drop' | 'breakOff';

export const BODY: Table<BodyState, BodyEvent> = {
  // With `Expect: 100-continue` the client may hold it back for good (RFC 9110, section 10.1.1).
  unread: { read: 'read', drop: 'dropped', breakOff: 'broken' },
  read: { drop: 'left', breakOff: 'broken' },
  // Nobody has asked for it. If it is short and of known length, the connection continues after it.
  dropped: { breakOff: 'broken' },
  // A part of it was asked for. The connection ends with the reply, unless all of it is here by then.
  left: { breakOff: 'broken' },
  // RFC 9112, section 8: an incomplete request is not used as if it were whole. `ctx.signal` aborts.
  broken: {},
};

/** The end of a connection, as far as it is decided. */
export type ConnectionState = 'open' | 'last' | 'followed' | 'cut' | 'ended' | 'closed';

/**
 * - `last`: nothing after the latest request is answered: `Connection: close` of a request, a reply or a trailer,
 *   HTTP/1.0, `Upgrade`, a refused head.
 * - `refuse`: malformed bytes or CONNECT follow the latest request, and have an answer of their own.
 * - `cut`: the rest can't be parsed, and has no answer of its own.
 * - `out`: the list is empty.
 * - `close`: the socket is closed: FIN from both sides, RST, a timer, `close()`.
 */
export type ConnectionEvent = 'last' | 'refuse' | 'cut' | 'out' | 'close';

export const CONNECTION: Table<ConnectionState, ConnectionEvent> = {
  // Persistent by default (RFC 9112, section 9.3).
  open: { last: 'last', refuse: 'followed', cut: 'cut', close: 'closed' },
  // The last reply says `connection: close`, and nothing follows it (section 9.6). node:http ends the connection.
  last: { cut: 'cut', close: 'closed' },
  // One more answer is sent after the replies in the list: 400, 408, 414, 431, 501. It ends the connection. If one of
  // those replies says `connection: close` by itself, the answer is not sent.
  followed: { last: 'cut', out: 'ended', close: 'closed' },
  // After the replies in the list, Postern ends the connection: node:http has stopped parsing, or the last reply did
  // not say `connection: close`.
  cut: { out: 'ended', close: 'closed' },
  // Half-closed, so that the client can read the last reply before it is reset (section 9.6).
  ended: { close: 'closed' },
  closed: {},
};
