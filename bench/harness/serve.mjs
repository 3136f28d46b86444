/**
 * The process of one contender: serves it, and tells what the process used when asked.
 *
 * Run as `node serve.mjs <server file> <contender> <spec>` with an IPC channel; it ends with its parent.
 */

import { readFileSync } from 'node:fs';

const [file, contender, spec] = process.argv.slice(2);
process.on('disconnect', () => process.exit());
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  // Linux alone, NaN elsewhere; `maxRSS` would begin with that of the process that started this one.
  const status = process.platform === 'linux' ? readFileSync('/proc/self/status', 'utf8') : '';
  const [, peakKiB] = /VmHWM:\s+(\d+)/.exec(status) ?? [];
  const peakBytes = Number(peakKiB) * 1024;
  process.send?.({ cpuMicros: user + system, rssBytes: process.memoryUsage.rss(), peakBytes });
});

const { contenders } = await import(`../servers/${file}.mjs`);
const server = await contenders[contender](JSON.parse(spec));
const { user, system } = process.cpuUsage();
process.send?.({ port: server.address().port, cpuMicros: user + system });
