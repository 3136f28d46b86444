/**
 * Runs `metrics.mjs`, which compares `postern/metrics` with prom-client and starts its own processes.
 */

import { fileURLToPath } from 'node:url';
import { start } from '../harness/processes.mjs';

const PROGRAM = fileURLToPath(new URL('../metrics.mjs', import.meta.url));

/**
 * @param {import('../harness/options.mjs').Options} options
 * @returns {Promise<string[]>} what it printed
 */
export async function metrics({ node, quick }) {
  console.log('\nmetrics\n');
  const child = start([node, [PROGRAM]], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(quick && { ROUNDS: '1' }) },
  });
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
    process.stdout.write(chunk);
  });
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (code !== 0) throw new Error(`metrics.mjs ended with ${code}`);
  return text.split('\n').filter((line) => line !== '');
}
