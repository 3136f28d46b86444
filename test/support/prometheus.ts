/** A real Prometheus, as Debian installs it, for the tests with the tag `prometheus` and a picture. */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from './ports.js';

/** A Prometheus that runs. */
export interface RunningPrometheus {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts a Prometheus that scrapes every second.
 *
 * @param targets the ports of each job
 * @param pathOf the path of a job's metrics. Default: `/users/metrics/`
 */
export async function startPrometheus(
  targets: Record<string, number | readonly number[]>,
  pathOf = (_job: string) => '/users/metrics/',
): Promise<RunningPrometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-prometheus-'));
  const port = await freePort();
  const jobs = Object.entries(targets).map(([name, ports]) => {
    const addresses = [ports].flat().map((target) => `'127.0.0.1:${target}'`);
    const found = `static_configs: [{ targets: [${addresses}] }]`;
    return `  - job_name: ${name}\n    metrics_path: ${pathOf(name)}\n    ${found}\n`;
  });
  const config = `global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n${jobs.join('')}`;
  writeFileSync(join(folder, 'prometheus.yml'), config);
  const args = [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--enable-feature=exemplar-storage',
  ];
  const child = spawn('prometheus', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  let hasExited = false;
  child.stderr.on('data', (chunk) => (log += String(chunk)));
  child.once('error', (error) => (log += `${error.message}: install the Debian package prometheus`));
  const exited = new Promise<void>((resolve) => child.once('exit', resolve).once('error', () => resolve()))
    .then(() => void (hasExited = true));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  while ((await fetch(`${url}/-/ready`).catch(() => null))?.status !== 200) {
    if (hasExited) {
      await stop();
      throw new Error(`Prometheus does not start:\n${log}`);
    }
    await setTimeout(50);
  }
  return { url, stop };
}
