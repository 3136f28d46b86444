/** What was found, grouped by the rule that was broken. */

import { parse, type Sequence } from './alphabet.js';
import { DIFFERENCES } from './differences.js';
import { Explorer, type Verdict } from './explore.js';

/** How many of the shortest sequences of a group are kept. */
const EXAMPLES = 5;

/** Verdicts of many sequences. */
export class Report {
  count = 0;
  failed = 0;
  /** The first sequence of two requests that has reached each state. */
  readonly states = new Map<string, Sequence>();
  readonly #groups = new Map<string, { count: number; shortest: string[] }>();
  readonly #differences = new Set<string>();

  add({ text, problems, state, difference }: Verdict): void {
    this.count += 1;
    if (problems.length > 0) this.failed += 1;
    if (difference !== null) this.#differences.add(difference);
    const sequence = parse(text);
    const key = `${sequence.packets} ${state}`;
    const isCounted = sequence.client === 'waits' && sequence.steps.length === 2;
    if (isCounted && !this.states.has(key)) this.states.set(key, sequence);
    for (const rule of new Set(problems.map((problem) => problem.rule))) {
      const group = this.#groups.get(rule) ?? { count: 0, shortest: [] };
      this.#groups.set(rule, group);
      group.count += 1;
      group.shortest = [...group.shortest, text].sort((a, b) => lengthOf(a) - lengthOf(b)).slice(0, EXAMPLES);
    }
  }

  get groups(): number {
    return this.#groups.size;
  }

  /** Listed differences to bare `node:http` that were not seen. */
  get outdated(): string[] {
    return DIFFERENCES.map(({ rule }) => rule).filter((rule) => !this.#differences.has(rule));
  }

  /** A line for each rule that was broken, with the shortest sequence that breaks it alone. */
  async lines(): Promise<string[]> {
    const groups = [...this.#groups].sort(([, a], [, b]) => lengthOf(a.shortest[0]) - lengthOf(b.shortest[0]));
    const explorer = new Explorer();
    const lines: string[] = [];
    for (const [rule, { count, shortest }] of groups) {
      let alone: string | undefined;
      for (const text of shortest) {
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
