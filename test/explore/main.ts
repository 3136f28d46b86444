/**
 * `npm run explore`: every sequence of one and of two requests, and a third one from each state that two have reached.
 *
 * A failure is printed with the text that shows it again; the exit status is 1 then. `--help` names the options.
 */

import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { format, parse, shortSequences, STEPS, variants, type Sequence } from './alphabet.js';
import { Explorer, type Verdict } from './explore.js';
import { coveringSequences } from './pairs.js';
import { watchTable } from './program.js';
import { HANGS, Report } from './report.js';

/** Connections at a time in one process. */
const BATCH = 200;
/** How long, in ms, a process may take for so many sequences. One that takes longer has stopped to turn its event loop. */
const hangMs = (count: number): number => 10_000 + 250 * count;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    only: { type: 'string', multiple: true },
    fixed: { type: 'boolean', default: false },
    every: { type: 'string', default: '1' },
    workers: { type: 'string', default: String(availableParallelism()) },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

/** What a process reports. */
interface Explored {
  readonly verdicts: readonly Verdict[];
  /** The transitions of the table of an exchange, and whether they were taken. */
  readonly transitions: readonly (readonly [string, boolean])[];
}

if (process.send !== undefined) await work();
else if (values.help) {
  console.log(`npm run explore -- [--only 'get/never+connect one drips']... [--fixed] [--every N] [--workers N]
  --only     explores this sequence only, and prints what happened; several run at the same time
  --fixed    explores the part that npm test explores
  --every    explores every Nth sequence; default: 1
  --workers  how many processes; default: one per core`);
} else if (values.only !== undefined) await replay(values.only);
else await exploreAll(values.fixed, Number(values.every), Number(values.workers));

/** A process that explores what it is sent. */
async function work(): Promise<void> {
  const explorer = new Explorer();
  const transitions = await watchTable();
  process.on('uncaughtException', (error) => explorer.escaped.push(String(error.stack)));
  process.on('message', async (texts: string[]) => {
    const verdicts = await explorer.explore(texts.map(parse));
    process.send?.({ verdicts, transitions: [...transitions] } satisfies Explored);
  });
  process.send?.({ verdicts: [], transitions: [] } satisfies Explored);
  // Modules can be loaded only as long as this one is.
  await new Promise((resolve) => process.once('disconnect', resolve));
  process.exit();
}

async function replay(texts: readonly string[]): Promise<void> {
  const verdicts = await new Explorer(true).explore(texts.map(parse));
  for (const { text, problems } of verdicts) {
    console.log(text);
    for (const { rule, step } of problems) console.log(`  ${rule}${step && ` (${step})`}`);
    if (problems.length === 0) console.log('  nothing is wrong');
  }
  process.exit(verdicts.some(({ problems }) => problems.length > 0) ? 1 : 0);
}

async function exploreAll(isFixed: boolean, every: number, workers: number): Promise<void> {
  const startedAt = performance.now();
  const report = new Report((text) => console.error(text));
  const select = (sequences: readonly Sequence[]): Sequence[] => sequences.filter((_, index) => index % every === 0);
  if (isFixed) await distribute('the fixed part', select(coveringSequences()), workers, report);
  else {
    await distribute('one and two requests', select([...shortSequences()]), workers, report);
    const thirds: Sequence[] = [];
    for (const { steps, packets } of report.states.values()) {
      for (const third of STEPS) thirds.push(...variants([...steps, third], [packets]));
    }
    await distribute(`a third request in ${report.states.size} states`, select(thirds), workers, report);
  }
  for (const line of await report.lines()) console.log(line);
  const unseen = isFixed || every > 1 ? [] : report.unseen;
  for (const line of unseen) console.log(line);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  console.log(`${report.count} sequences in ${seconds} s on Node.js ${process.version}: ${report.failed} failed`);
  process.exit(report.failed + unseen.length > 0 ? 1 : 0);
}

/** Has processes explore sequences, and reports how far they are. */
async function distribute(what: string, sequences: readonly Sequence[], workers: number, into: Report): Promise<void> {
  const batches: string[][] = [];
  for (let at = 0; at < sequences.length; at += BATCH) batches.push(sequences.slice(at, at + BATCH).map(format));
  let [done, shownAt] = [0, performance.now()];
  const add = (verdicts: readonly Verdict[]): void => {
    for (const verdict of verdicts) into.add(verdict);
    done += verdicts.length;
    if (performance.now() - shownAt < 2000 && done < sequences.length) return;
    shownAt = performance.now();
    console.error(`${what}: ${done} of ${sequences.length}, ${into.groups} rules broken`);
  };
  const work = async (): Promise<void> => {
    while (batches.length > 0) {
      const hung = await exploreInProcess(batches, add, into);
      if (hung.length === 1) add([{ text: hung[0] as string, problems: [HANGS], state: '', difference: null }]);
      // Which of them it was shows when fewer are run at a time.
      else if (hung.length > 1) batches.push(hung.slice(0, hung.length >> 1), hung.slice(hung.length >> 1));
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
}

/** Has one process explore batches until none is left, or the process hangs. @returns the batch that it hangs with */
function exploreInProcess(
  batches: string[][],
  add: (verdicts: readonly Verdict[]) => void,
  into: Report,
): Promise<string[]> {
  const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  return new Promise((resolve, reject) => {
    const child = fork(file('../support/run.mjs'), [file('main.ts')], { execArgv: ['--max-semi-space-size=64'] });
    let batch: string[] = [];
    let timer: NodeJS.Timeout | undefined;
    child.on('message', ({ verdicts, transitions }: Explored) => {
      clearTimeout(timer);
      add(verdicts);
      for (const [transition, isTaken] of transitions) into.note(transition, isTaken);
      batch = batches.shift() ?? [];
      if (batch.length === 0) return child.disconnect();
      child.send(batch);
      timer = setTimeout(() => child.kill('SIGKILL'), hangMs(batch.length));
    });
    child.once('error', reject).once('exit', () => resolve(batch));
  });
}
