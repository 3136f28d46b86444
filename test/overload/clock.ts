/** The clock of an application in a world. It imports nothing of `src`, whose clock it takes the place of. */

import { clockOf, type SimulatedClock, type SimulatedWorld } from '../support/simulated-clock.js';

let current: SimulatedWorld | undefined;

export const clock: SimulatedClock = clockOf(() => {
  if (current === undefined) throw new Error('no world has begun; call enter()');
  return current;
});

/** Lets the time of a world pass for whatever uses the clock. */
export function enter(world: SimulatedWorld): void {
  current = world;
}
