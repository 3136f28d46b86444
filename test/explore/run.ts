/** One connection under way: its client, and what was seen of it. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { partsOf, type Sequence, type Step } from './alphabet.js';
import { time } from './time.js';
import { Client } from './wire.js';

/** What was seen of one request. */
export interface Seen {
  readonly run: Run;
  readonly index: number;
  readonly step: Step;
  /** How often `node:http` handed the request out as one for a handler. */
  emitted: number;
  ran: number;
  ranAt: number;
  abortedAt: number | null;
  /** Streams made for the reply that are not freed. */
  sources: number;
  /** The statuses of its lines in the access log. */
  readonly logged: number[];
  /** What ran in the async context of another request. */
  readonly foreign: string[];
  /** Rules that its handler saw broken when it began. */
  readonly faults: string[];
  req: IncomingMessage | null;
  res: ServerResponse | null;
}

const PROBE: Step = { kind: 'get', handler: 'value' };
/** How long a client waits for `100 Continue`, for the end of an idle connection, and after its probe. */
const [CONTINUE_MS, PATIENCE_MS, PROBE_MS, DEAF_MS] = [1000, 8000, 2000, 8000];

export class Run {
  readonly client: Client = new Client();
  /** The requests of the sequence, and that with which a client that drips ends. */
  readonly steps: readonly Step[];
  readonly seen: readonly Seen[];
  /** How many requests were sent as a whole. */
  sent = 0;
  /** The state of the connection, before the client does what it does then; empty if it sends no further request. */
  state = '';

  constructor(readonly id: number, readonly sequence: Sequence) {
    this.steps = sequence.client === 'drips' ? [...sequence.steps, PROBE] : sequence.steps;
    const unseen = { emitted: 0, ran: 0, ranAt: -1, abortedAt: null, sources: 0, req: null, res: null };
    this.seen = this.steps.map((step, index) => {
      return { run: this, index, step, ...unseen, logged: [], foreign: [], faults: [] };
    });
  }

  /** Does what the client does; never rejects. */
  async drive(): Promise<void> {
    const { client, sequence } = this;
    client.reads = sequence.client !== 'deaf';
    await this.#send(sequence.steps, sequence.packets === 'one' ? 0 : 10);
    const isOver = (): boolean => client.endedAt !== null;
    if (sequence.client === 'half-closes' || sequence.client === 'resets') {
      if (sequence.packets === 'several') await time.sleep(7);
      if (sequence.client === 'resets') client.reset();
      else client.finish();
      return;
    }
    await client.until(isOver, 100);
    if (sequence.packets === 'one' || !isOver()) this.state = stateOf(this);
    if (sequence.client === 'waits') {
      await client.until(isOver, PATIENCE_MS);
      client.finish();
    } else if (sequence.client === 'drips') {
      await this.#send([PROBE], 50);
      await client.until(isOver, PROBE_MS);
      client.reset();
    } else {
      for (const end = time.now + DEAF_MS; time.now < end; await time.sleep(250)) client.send(Buffer.from('\r\n'));
      client.reset();
    }
  }

  /** @param pauseMs between packets; 0 for as few packets as possible */
  async #send(steps: readonly Step[], pauseMs: number): Promise<void> {
    const { client } = this;
    const packet: Buffer[] = [];
    let text = '';
    const cut = (): void => {
      if (text !== '') packet.push(Buffer.from(text, 'latin1'));
      text = '';
    };
    const flush = (): void => {
      cut();
      client.send(...packet.splice(0));
    };
    for (const step of steps) {
      for (const part of partsOf(step, `${this.id}.${this.sent}`, step === PROBE)) {
        if (part.awaits) {
          flush();
          const continues = countContinues(client);
          await client.until(() => client.endedAt !== null || countContinues(client) > continues, CONTINUE_MS);
        }
        text += part.text;
        // Promises and ticks have their turn when node:http has handed on bytes of a body, and at the end of a packet.
        if (part.isBody) cut();
        if (pauseMs > 0) {
          flush();
          await time.sleep(pauseMs);
        }
        if (client.endedAt !== null) return;
      }
      this.sent += 1;
    }
    flush();
  }
}

/** What can be seen of a connection, as one text: connections of the same state do the same from then on. */
function stateOf({ client: { socket, endedAt }, seen, sequence: { steps } }: Run): string {
  const requests = steps.map((_, index) => {
    const { ran, req, res, sources, logged } = seen[index] as Seen;
    if (req === null || res === null) return '-';
    const request = [ran > 0, logged.length > 0, sources > 0, req.complete, req.readableLength > 0];
    const { headersSent, writableEnded, writableFinished, destroyed, shouldKeepAlive } = res;
    request.push(headersSent, writableEnded, writableFinished, destroyed, shouldKeepAlive, res.socket !== null);
    return bits(...request);
  });
  const { destroyed, writableEnded, waiting, writableLength } = socket;
  const ends = [endedAt !== null, destroyed, writableEnded];
  return `${bits(...ends, socket.isPaused(), waiting > 0, writableLength > 0)} ${requests}`;
}

function bits(...flags: readonly boolean[]): string {
  return flags.map(Number).join('');
}

function countContinues({ received }: Client): number {
  return received.filter((bytes) => bytes.includes('HTTP/1.1 100 ')).length;
}
