/*
 * Handles the signals that ask a process to end.
 */

import { isRunByHand } from '../base/log.js';

/**
 * Load balancers stop sending within a few seconds after an instance is removed (Kubernetes, gateways, DNS caches).
 */
const SIGTERM_DELAY_MS = 5_000;

/** How long, in ms, a drain keeps serving by default: nobody balances load to a service that a person runs. */
export function drainDelayOf(signal: NodeJS.Signals, env: NodeJS.ProcessEnv): number {
  return signal === 'SIGTERM' && !isRunByHand(env) ? SIGTERM_DELAY_MS : 0;
}

/**
 * Ends the process at SIGTERM or SIGINT; at once at the second signal.
 *
 * @param drain resolves to whether nothing had to be cut off: the exit code is 0 then, else 1
 */
export function exitOnSignal(drain: (signal: NodeJS.Signals) => Promise<boolean>): void {
  let signaled = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signaled) process.exit(1);
    signaled = true;
    void drain(signal).then((clean) => process.exit(clean ? 0 : 1));
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
}
