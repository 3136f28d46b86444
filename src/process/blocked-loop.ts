/*
 * Watches the event loop from a worker, which can look while the main thread can't: when the loop is blocked, the
 * worker pauses the main thread once, reads the function that runs, and lets it continue.
 *
 * Spec: Chrome DevTools Protocol, domain Debugger.
 */

import { Worker } from 'node:worker_threads';
import { setInterval, clearInterval } from '../base/clock.js';

/** The function that blocked the event loop. */
export interface Blockage {
  readonly function: string;
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

const BEAT_MS = 100;
const BLOCKED_MS = 300;
const LOOK_EVERY_MS = 1_000;
const REPORT_EVERY_MS = 60_000;

/** A text, so that a bundler need not find a file. */
const WATCHER = `
const { parentPort, workerData } = process.getBuiltinModule('node:worker_threads');
const { Session } = process.getBuiltinModule('node:inspector');
const beats = new Int32Array(workerData.beats);
const nowMs = () => Number(process.hrtime.bigint() / 1000000n);
const state = { seen: 0, sinceMs: nowMs(), quietUntilMs: 0 };
const look = () => {
  const session = new Session();
  const files = new Map();
  session.connectToMainThread();
  session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => files.set(scriptId, url));
  session.on('Debugger.paused', ({ params: { callFrames } }) => {
    session.post('Debugger.resume', () => session.disconnect());
    const fileOf = ({ location: { scriptId } }) => files.get(scriptId) ?? '';
    const frame = callFrames.find((each) => !/^(?:node:.*)?$/.test(fileOf(each)));
    // Nobody's function runs: the process only waits for the CPU.
    if (frame === undefined) return;
    state.quietUntilMs = nowMs() + ${REPORT_EVERY_MS};
    const { functionName, location: { lineNumber } } = frame;
    const file = fileOf(frame).replace(/^file:\\/\\//, '');
    parentPort.postMessage({ function: functionName || '(anonymous)', file, line: lineNumber + 1 });
  });
  session.post('Debugger.enable');
  session.post('Debugger.pause');
};
setInterval(() => {
  const now = nowMs();
  const beat = Atomics.load(beats, 0);
  if (beat !== state.seen) Object.assign(state, { seen: beat, sinceMs: now });
  else if (now - state.sinceMs > ${BLOCKED_MS} && now > state.quietUntilMs) {
    state.quietUntilMs = now + ${LOOK_EVERY_MS};
    look();
  }
}, ${BEAT_MS / 2});
`;

/**
 * Starts to watch; costs some 9 MiB.
 *
 * @param onBlocked is called when the loop continues, at most once a minute
 * @param onFailure is called if the worker can't run
 * @returns stops it
 */
export function watchLoop(onBlocked: (by: Blockage) => void, onFailure: (error: Error) => void): () => void {
  // Without the permission for the inspector, the worker would end the process when it looks.
  const denied = ['inspector', 'worker'].find((scope) => process.permission?.has(scope) === false);
  if (denied !== undefined) {
    onFailure(new Error(`--permission denies the ${denied}; start with --allow-${denied}, if this Node.js has that flag`));
    return () => undefined;
  }
  const beats = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const counter = new Int32Array(beats);
  const timer = setInterval(() => Atomics.add(counter, 0, 1), BEAT_MS).unref();
  const options = { eval: true, execArgv: [], workerData: { beats }, resourceLimits: { maxOldGenerationSizeMb: 16 } };
  const worker = new Worker(WATCHER, options);
  worker.unref();
  worker.on('message', onBlocked).on('error', onFailure);
  return () => {
    clearInterval(timer);
    void worker.terminate();
  };
}
