/** A real Prometheus, as Debian installs it, for the tests with the tag `prometheus`. */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { freePorts } from './gateway-process.js';

/**
 * Starts a Prometheus that scrapes every second; it is killed when the test ends.
 *
 * @param targets the port of each job
 * @param pathOf the path of a job's metrics. Default: `/users/metrics/`
 * @returns its URL
 */
export async function startPrometheus(
  targets: Record<string, number>,
  pathOf = (_job: string) => '/users/metrics/',
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-prometheus-'));
  const [port = 0] = await freePorts(1);
  const jobs = Object.entries(targets).map(([name, target]) => {
    return `  - job_name: ${name}\n    metrics_path: ${pathOf(name)}\n    static_configs: [{ targets: ['127.0.0.1:${target}'] }]\n`;
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
  child.stderr.on('data', (chunk) => (log += String(chunk)));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()));
  child.once('error', (error) => (log += `${error.message}: install the Debian package prometheus`));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  const ready = async (): Promise<unknown> => (await fetch(`${url}/-/ready`).catch(() => null))?.status ?? log;
  await expect.poll(ready, { timeout: 20_000 }).toBe(200);
  return url;
}
