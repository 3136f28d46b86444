/*
 * Ends tries of calls when an `AbortSignal` aborts. A signal that many calls share gets one listener for all of their
 * tries, and has none when they are over: Node.js warns of more than ten listeners, and each `AbortSignal.any` would
 * leave something behind on the signal.
 */

type End = (reason: unknown) => void;

const ends = new WeakMap<EventTarget, Set<End>>();

/** Calls `end` when the signal aborts, once however often it was given. @param signal not aborted yet */
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
