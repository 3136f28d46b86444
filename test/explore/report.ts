/** What was found, grouped by the rule that was broken. */

import { parse, type Sequence } from './alphabet.js';
import { DIFFERENCES } from './differences.js';
import { Explorer, type Verdict } from './explore.js';
import type { Problem } from './oracle.js';

/** How many of the shortest sequences of a group are kept. */
const EXAMPLES = 5;

/** The process that explores a sequence answers no more. */
export const HANGS: Problem = { rule: 'the event loop stops to turn', step: '' };

/** Verdicts of many sequences. */
export class Report {
  count = 0;
  failed = 0;
  /** The first sequence of two requests that has reached each state. */
  readonly states = new Map<string, Sequence>();
  readonly #groups = new Map<string, { count: number; shortest: string[] }>();
  readonly #differences = new Set<string>();
  readonly #announce: (text: string) => void;
  readonly #transitions = new Map<string, boolean>();

  /** @param announce is told of each rule when it is broken for the first time */
  constructor(announce: (text: string) => void = () => undefined) {
    this.#announce = announce;
  }

  add({ text, problems, state, difference }: Verdict): void {
    this.count += 1;
    if (problems.length > 0) this.failed += 1;
    if (difference !== null) this.#differences.add(difference);
    const sequence = parse(text);
    const key = `${sequence.packets} ${state}`;
    const isCounted = sequence.client === 'waits' && sequence.steps.length === 2 && state !== '';
    if (isCounted && !this.states.has(key)) this.states.set(key, sequence);
    for (const rule of new Set(problems.map((problem) => problem.rule))) {
      const group = this.#groups.get(rule) ?? { count: 0, shortest: [] };
      if (group.count === 0) this.#announce(`broken for the first time: ${rule} (${text})`);
      this.#groups.set(rule, group);
      group.count += 1;
      group.shortest = [...group.shortest, text].sort((a, b) => lengthOf(a) - lengthOf(b)).slice(0, EXAMPLES);
    }
  }

  get groups(): number {
    return this.#groups.size;
  }

  /** Notes a transition of the table of an exchange. */
  note(transition: string, isTaken: boolean): void {
    this.#transitions.set(transition, isTaken || this.#transitions.get(transition) === true);
  }

  /** What should have been seen in a whole exploration, and was not. */
  get unseen(): string[] {
    const differences = DIFFERENCES.filter(({ rule }) => !this.#differences.has(rule));
    const transitions = [...this.#transitions].filter(([, isTaken]) => !isTaken);
    return [
      ...differences.map(({ rule }) => `never seen, though differences.ts lists it: ${rule}`),
      ...transitions.map(([transition]) => `never taken, though src/wire/exchange.ts names it: ${transition}`),
    ];
  }

  /** A line for each rule that was broken, with the shortest sequence that breaks it alone. */
  async lines(): Promise<string[]> {
    const groups = [...this.#groups].sort(([, a], [, b]) => lengthOf(a.shortest[0]) - lengthOf(b.shortest[0]));
    const explorer = new Explorer();
    const lines: string[] = [];
    for (const [rule, { count, shortest }] of groups) {
      // This process would hang, too.
      let alone = rule === HANGS.rule ? shortest[0] : undefined;
      for (const text of alone === undefined ? shortest : []) {
        const [verdict] = await explorer.explore([parse(text)]);
        if (verdict?.problems.some((problem) => problem.rule === rule)) alone ??= text;
      }
      const note = alone === undefined ? ' (breaks it among other connections only)' : '';
      lines.push(`${count} × ${rule}\n    npm run explore -- --only '${alone ?? shortest[0]}'${note}`);
    }
    return lines;
  }
}

/** Fewer requests first, then fewer characters. */
function lengthOf(text = ''): number {
  return text.split('+').length * 1000 + text.length;
}
