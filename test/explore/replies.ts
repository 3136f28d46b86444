/** What a client got, read strictly. */

import { ResponseReader, type WireResponse } from '../support/strict-client.js';
import { methodOf } from './alphabet.js';
import type { Run } from './run.js';

/** Everything that a client got. */
export interface Received {
  /** The final replies that are whole, in order. */
  readonly replies: readonly WireResponse[];
  /** How many bytes the client had when each of them was whole. */
  readonly ends: readonly number[];
  /** Whether an unfinished reply follows. */
  readonly isPartial: boolean;
  /** What followed a 101. */
  readonly protocol: string | null;
  /** What is not well-formed. */
  readonly malformed: string | null;
}

export function read({ client, steps, sequence }: Run): Received {
  const reader = new ResponseReader();
  const replies: WireResponse[] = [];
  const ends: number[] = [];
  let protocol: string | null = null;
  let malformed: string | null = null;
  let hasEnded = false;
  let isPartial = false;
  for (const bytes of client.received) reader.push(bytes);
  try {
    while (protocol === null) {
      const step = steps[replies.length];
      if (step === undefined && reader.rest.length > 0) throw new Error('more replies than requests');
      const reply = reader.next(step === undefined ? 'GET' : methodOf(step));
      if (reply === null) {
        if (hasEnded || client.endedAt === null || reader.rest.length === 0) break;
        // A body may end with the connection.
        reader.end();
        hasEnded = true;
      } else if (reply.status === 101) {
        protocol = reader.rest.toString('latin1');
        replies.push(reply);
        ends.push(client.receivedBytes);
      } else if (hasEnded && (sequence.client === 'half-closes' || sequence.client === 'resets')) {
        // What ends with the connection may have ended because the client left.
        isPartial = true;
      } else if (reply.status >= 200) {
        replies.push(reply);
        ends.push(client.receivedBytes - reader.rest.length);
      }
    }
  } catch (error) {
    const { message } = error as Error;
    if (!message.includes('the connection ended')) malformed = message;
  }
  isPartial ||= malformed === null && protocol === null && reader.rest.length > 0;
  return { replies, ends, isPartial, protocol, malformed };
}
