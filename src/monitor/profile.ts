/* Takes a CPU profile or a heap snapshot of this process. Both reveal its memory: `guard` decides who may ask. */

import type { Context, Handler } from '../answer/context.js';
import { reply, type Reply } from '../answer/reply.js';
import { builtin } from '../base/builtin.js';
import { within } from '../base/deadline.js';
import { BadRequest, Conflict, ServiceUnavailable } from '../base/errors.js';
import { logSafely, type Logger } from '../base/log.js';

/** Maximum length of a CPU profile. */
export const MAX_PROFILE_SECONDS = 60;
const JSON_TYPE = { headers: { 'content-type': 'application/json' } };

/** The handler of `POST /<name>/profile/?cpu=5` and `?heap`. One request at a time; another one gets 409. */
export function createProfile(logger: Logger): Handler {
  let isBusy = false;
  return async (ctx: Context): Promise<Reply> => {
    const seconds = ctx.query.has('heap') ? 0 : secondsOf(ctx.query.get('cpu'));
    if (isBusy) throw new Conflict('A profile is being taken; ask again when it is done.');
    assertProfilable(seconds);
    isBusy = true;
    ctx.exchange.onOver(() => (isBusy = false));
    logSafely(logger, 'warn', { seconds, request_id: ctx.id }, seconds === 0 ? 'heap snapshot taken' : 'CPU profiled');
    const taken = seconds === 0 ? builtin('node:v8').getHeapSnapshot() : await profileCpu(seconds, ctx.signal);
    return reply(taken, JSON_TYPE);
  };
}

function secondsOf(text: string | null): number {
  if (text !== null && /^[1-9]\d?$/.test(text) && Number(text) <= MAX_PROFILE_SECONDS) return Number(text);
  throw new BadRequest(`Give ?cpu=SECONDS, from 1 to ${MAX_PROFILE_SECONDS}, or ?heap`);
}

/** @throws {ServiceUnavailable} if this process can't take it now */
function assertProfilable(seconds: number): void {
  // A snapshot needs about as much memory as the heap once more, twice at its peak.
  if (seconds === 0 && process.availableMemory() < 2 * process.memoryUsage().heapTotal)
    throw new ServiceUnavailable('Less memory is free than twice the heap.');
  if (seconds > 0 && cpuProfiler() === undefined && process.permission?.has('inspector') === false)
    throw new ServiceUnavailable('--permission denies the inspector; from Node.js 24 on a profile does not need it.');
}

/** Exists from Node.js 24 on; also works under `--permission`, where the inspector does not. */
function cpuProfiler(): (() => { stop(): string }) | undefined {
  return Reflect.get(builtin('node:v8'), 'startCpuProfile') as (() => { stop(): string }) | undefined;
}

async function profileCpu(seconds: number, signal: AbortSignal): Promise<string> {
  // A client that disconnects leaves no timer that would hold the process.
  const wait = (): Promise<void> =>
    within(seconds * 1000, new Promise((resolve) => signal.addEventListener('abort', resolve)));
  const profile = cpuProfiler()?.();
  if (profile !== undefined) {
    await wait();
    return profile.stop();
  }
  const { Session } = builtin('node:inspector/promises');
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await wait();
    return JSON.stringify((await session.post('Profiler.stop')).profile);
  } finally {
    session.disconnect();
  }
}
