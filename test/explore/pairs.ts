/** A small part of what can be explored, in which every pair of values occurs. */

import { createRandom } from '../support/random.js';
import { CLIENTS, PACKETS, STEPS, variants, type Sequence } from './alphabet.js';

/** Out of how many sequences each is chosen. */
const CANDIDATES = 40;

/** The pairs of values of a sequence: request, handler, client, packets, position; and requests in a row. */
function pairsOf({ steps, client, packets }: Sequence): string[] {
  const shared = [`client ${client}`, `packets ${packets}`];
  const pairs: string[] = [];
  const add = (...values: string[]): void => {
    for (const [index, value] of values.entries()) {
      for (const other of values.slice(index + 1)) pairs.push(`${value}, ${other}`);
    }
  };
  for (const [index, { kind, handler }] of steps.entries()) {
    add(...shared, `position ${index}`, `request ${kind}`, `handler ${handler}`);
    const next = steps[index + 1];
    if (next !== undefined) pairs.push(`${kind} before ${next.kind}`, `${handler} before ${next.handler}`);
  }
  return pairs;
}

/** All sequences of one request, and enough of two and three; the same in every run. */
export function coveringSequences(): Sequence[] {
  const single = STEPS.flatMap((step) => [...variants([step])]);
  const wanted = new Set<string>();
  const want = (sequence: Sequence): void => pairsOf(sequence).forEach((pair) => wanted.add(pair));
  for (const step of STEPS) for (const sequence of variants([step, step, step])) want(sequence);
  for (const one of STEPS) {
    for (const other of STEPS) want({ steps: [one, other], client: 'waits', packets: 'one' });
  }
  const random = createRandom(1);
  const chosen: Sequence[] = [];
  while (wanted.size > 0) {
    const candidates = Array.from({ length: CANDIDATES }, (): Sequence => ({
      steps: [random.pick(STEPS), random.pick(STEPS), random.pick(STEPS)],
      client: random.pick(CLIENTS),
      packets: random.pick(PACKETS),
    }));
    const gains = candidates.map((candidate) => new Set(pairsOf(candidate).filter((pair) => wanted.has(pair))));
    const best = gains.reduce((most, gain, index) => (gain.size > (gains[most] as Set<string>).size ? index : most), 0);
    for (const pair of gains[best] as Set<string>) wanted.delete(pair);
    if ((gains[best] as Set<string>).size > 0) chosen.push(candidates[best] as Sequence);
  }
  return [...single, ...chosen];
}
