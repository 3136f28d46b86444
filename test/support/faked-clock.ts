/**
 * Replaces `base/clock` in tests with fake timers. Postern takes its clock when it is loaded, so fake timers would not
 * reach it.
 */

const TIMERS = [
  'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate', 'Date',
] as const;

/** @returns the clock's functions, each looked up among the globals when it is used */
export function fakeClock<Clock extends object>(clock: Clock): Clock {
  const looked = TIMERS.map((name) => [name, { enumerable: true, get: () => globalThis[name] }]);
  return Object.defineProperties({ ...clock, monotonicNow: () => performance.now() }, Object.fromEntries(looked));
}
