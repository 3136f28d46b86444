/*
 * What an `AbortSignal` ends, however many tries that is: a signal has one listener for all of them while there are
 * any, and none after that. Node.js warns of more than ten listeners, and `AbortSignal.any` would leave a trace of
 * every call on a signal that many calls share.
 */

type End = (reason: unknown) => void;

const ends = new WeakMap<EventTarget, Set<End>>();

/** Calls back when the signal aborts; the same function is called once. @param signal not aborted yet */
export function whenAborted(signal: AbortSignal, end: End): void {
  const all = ends.get(signal) ?? new Set();
  if (all.size === 0) {
    ends.set(signal, all);
    signal.addEventListener('abort', onAbort);
  }
  all.add(end);
}

/** Takes {@link whenAborted} back. */
export function forgetAborted(signal: AbortSignal, end: End): void {
  const all = ends.get(signal);
  if (all?.delete(end) === true && all.size === 0) signal.removeEventListener('abort', onAbort);
}

function onAbort({ target }: Event): void {
  const signal = target as AbortSignal;
  for (const end of [...(ends.get(signal) ?? [])]) end(signal.reason);
}
