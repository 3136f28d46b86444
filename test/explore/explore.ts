/** Explores sequences, many connections at a time, and judges each. */

import { format, type Sequence } from './alphabet.js';
import { compare } from './differences.js';
import { judge, type Problem } from './oracle.js';
import { bareProgram, enter, leave, posternProgram, type Program } from './program.js';
import { read, type Received } from './replies.js';
import { Run } from './run.js';
import { inNextTurn, time } from './time.js';

/** By then every client has left, and every connection is over. */
const HORIZON_MS = 30_000;

/** What became of one sequence. */
export interface Verdict {
  readonly text: string;
  /** The rules that it broke. */
  readonly problems: readonly Problem[];
  readonly state: string;
  /** The rule of a listed difference to bare `node:http`. */
  readonly difference: string | null;
}

export class Explorer {
  #ours: Program | undefined;
  readonly #bare: Program = bareProgram();
  #count = 0;
  /** How many requests were active at last. */
  #active = 0;
  /** Errors that nobody caught. */
  readonly escaped: string[] = [];

  /** @param prints whether to print what happened */
  constructor(readonly prints: boolean = false) {}

  /** Runs sequences at the same time. */
  async explore(sequences: readonly Sequence[]): Promise<Verdict[]> {
    const ours = (this.#ours ??= await posternProgram());
    const pairs = sequences.map((sequence) => {
      const run = this.#start(sequence, ours);
      // What a client gets that leaves at once is a matter of chance on either side.
      const isCompared = sequence.client === 'waits' || sequence.client === 'drips';
      return [run, isCompared ? this.#start(sequence, this.#bare) : null] as const;
    });
    await time.runUntil(time.now + HORIZON_MS);
    const verdicts = pairs.map(([run, bare]) => this.#judge(run, bare));
    for (const run of pairs.flat()) run?.client.socket.destroy();
    await time.runUntil(time.now + 1000);
    for (const run of pairs.flat()) if (run !== null) leave(run);
    const left = this.#problemsOfAll(ours);
    if (left.length === 0) return verdicts;
    if (sequences.length > 1) {
      // Which of them it was shows when fewer are run at a time.
      const half = sequences.length >> 1;
      const again = [...(await this.explore(sequences.slice(0, half))), ...(await this.explore(sequences.slice(half)))];
      if (again.some(({ problems }) => problems.some(({ rule }) => left[0]?.rule === rule))) return again;
    }
    const [first, ...others] = verdicts as [Verdict, ...Verdict[]];
    return [{ ...first, problems: [...first.problems, ...left] }, ...others];
  }

  /** What the connections have left behind together. */
  #problemsOfAll(ours: Program): Problem[] {
    const active = ours.active();
    const problems = this.escaped.splice(0).map((step): Problem => ({ rule: 'an error that nobody caught', step }));
    if (active > this.#active) problems.push({ rule: 'requests are active after all connections', step: '' });
    this.#active = active;
    return problems;
  }

  #judge(run: Run, bare: Run | null): Verdict {
    const received = read(run);
    const problems = judge(run, received);
    if (this.prints) print(run, received);
    const verdict = { text: format(run.sequence), state: run.state };
    if (bare === null || problems.length > 0) return { ...verdict, problems, difference: null };
    // Where bare node:http breaks the contract, the contract has spoken.
    const bareReceived = read(bare);
    const difference = judge(bare, bareReceived, true).length > 0 ? null : compare(run, received, bare, bareReceived);
    if (typeof difference === 'string' || difference === null) return { ...verdict, problems, difference };
    return { ...verdict, problems: [difference], difference: null };
  }

  #start(sequence: Sequence, { server }: Program): Run {
    const run = new Run((this.#count += 1), sequence);
    enter(run);
    inNextTurn(() => {
      server.emit('connection', run.client.socket);
      void run.drive();
    });
    return run;
  }
}

function print({ client, seen, sent }: Run, { replies, ends, isPartial, protocol }: Received): void {
  const { leftAt, endedAt, heldAt, socket } = client;
  for (const [index, { status, headers }] of replies.entries()) {
    console.log(`  reply ${index}: ${status} at ${client.markAt(ends[index] as number)} ms`, { ...headers });
  }
  console.log(`  connection:`, { sent, isPartial, protocol, leftAt, endedAt, heldAt, closedAt: socket.closedAt });
  for (const { index, run: _run, req: _req, res: _res, step, ...rest } of seen) {
    console.log(`  request ${index}: ${JSON.stringify({ ...step, ...rest })}`);
  }
}
