/*
 * Draws the last answers of an edge as bars.
 *
 * Runs in the page: functions here use each other and nothing else of their module (see page.ts).
 */

import type { Sample } from './track.js';

/** The answers of the last 60 reports as the outlines of two kinds of bars, the newest at the right end. */
export function drawSparkline(history: readonly Sample[], height: number): { answered: string; failed: string } {
  const times = history.flatMap((sample) => (sample === null || sample.failed ? [] : [sample.ms ?? 0]));
  times.sort((a, b) => a - b);
  // One slow answer is cut off at the top, rather than flatten all the others.
  const top = Math.max(10, 1.5 * (times[Math.floor(0.9 * (times.length - 1))] ?? 0));
  const bars = { answered: '', failed: '' };
  history.forEach((sample, index) => {
    if (sample === null) return;
    const x = (60 - history.length + index) * 3;
    const share = sample.failed ? 1 : Math.min(1, (sample.ms ?? 0) / top);
    const bar = Math.round((2 + share * (height - 2)) * 10) / 10;
    bars[sample.failed ? 'failed' : 'answered'] += `M${x} ${height}v${-bar}h2v${bar}z`;
  });
  return bars;
}
