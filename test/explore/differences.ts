/** Where Postern answers otherwise than the same program on bare `node:http`, although the contract lets both. */

import { formatStep, hasBody, type Step } from './alphabet.js';
import type { Problem } from './oracle.js';
import type { Received } from './replies.js';
import type { Run } from './run.js';

/** A difference that is wanted. */
interface Difference {
  readonly rule: string;
  /** @param step the first request that is answered otherwise; `before` is the one before it */
  applies(step: Step, ours: string, bare: string, before: Step | undefined): boolean;
}

const isClosed = (ours: string, bare: string): boolean => ours === `${bare} close`;

export const DIFFERENCES: readonly Difference[] = [
  {
    // RFC 9110, section 10.1.1.
    rule: 'A client that announced its body and was not told to send it may never do so: the connection ends.',
    applies: ({ kind }, ours, bare) => (kind === 'expect' || kind === 'eager') && isClosed(ours, bare),
  },
  {
    // RFC 9112, section 9.3. The head of a stream may have promised otherwise.
    rule: 'A body that no handler reads, and that has not come when its reply is sent, ends the connection.',
    applies: (step, ours, bare, before) =>
      (hasBody(step) && isClosed(ours, bare)) || (before !== undefined && hasBody(before) && ours === 'ended'),
  },
  {
    // RFC 9112, section 7.1.
    rule: 'A malformed body is refused with 400 if its reply has not begun.',
    applies: ({ kind }, ours) => kind === 'bad-body' && ours === '400 close',
  },
  {
    rule: 'CONNECT is answered with 501, instead of being ended without a reply.',
    applies: ({ kind }, ours, bare) => kind === 'connect' && ours === '501 close' && bare === 'ended',
  },
  {
    rule: 'An upgrade while an earlier reply is not with the kernel yet is not answered: the connection ends.',
    applies: ({ kind }, ours, bare, before) =>
      kind === 'upgrade' && ours === 'ended' && bare === '101' && before?.handler === 'bulk',
  },
];

/** What a client got, as texts: each reply, then the end. */
function outcome({ client }: Run, { replies, isPartial }: Received): string[] {
  const closes = (connection = ''): boolean => connection.includes('close');
  const texts = replies.map(({ status, headers }) => `${status}${closes(headers['connection']) ? ' close' : ''}`);
  return [...texts, `${isPartial ? 'a part, ' : ''}${client.endedAt === null || client.leftFirst ? 'open' : 'ended'}`];
}

/**
 * Compares what two clients got.
 *
 * @returns the rule of the difference; a problem for one that is not listed; null for none
 */
export function compare(run: Run, received: Received, bareRun: Run, bareReceived: Received): string | Problem | null {
  const [ours, bare] = [outcome(run, received), outcome(bareRun, bareReceived)];
  const index = ours.findIndex((text, at) => text !== bare[at]);
  if (index === -1) return null;
  const step = run.steps[Math.min(index, run.steps.length - 1)] as Step;
  const [our, other] = [ours[index] as string, bare[index] ?? ''];
  // How much of a reply is sent before it breaks off is a matter of chance, and bare node:http may hang after it.
  const breaksOff = ({ handler }: Step): boolean => handler === 'failing' || handler === 'destroy';
  if (run.steps.slice(0, index + 1).some(breaksOff)) return null;
  const known = DIFFERENCES.find(({ applies }) => applies(step, our, other, run.steps[index - 1]));
  return known?.rule ?? { rule: `bare node:http has "${other}", Postern "${our}"`, step: formatStep(step) };
}
