/**
 * `npm run gateways`: 600 random sites of one to three services behind nginx, HAProxy and Caddy, and 200,000 raw
 * requests with fixed seeds. Only public handlers may run, every request that one of them answers directly must be
 * answered through each gateway, and no gateway may answer with a 5xx. Then 20,000 requests that fail or are slow: the
 * public learns nothing of the calls that were made for them.
 */

import { createRandom } from '../support/random.js';
import { runSites } from '../support/gateway-random.js';
import { askAsPublic } from '../support/public-calls.js';

const BATCHES = 20;
const SITES = 30;
const REQUESTS = 112;

const started = performance.now();
let [sent, answered, failed] = [0, 0, 0];
for (let batch = 1; batch <= BATCHES; batch += 1) {
  const seed = 1_000 + batch;
  const outcome = await runSites(createRandom(seed), SITES, REQUESTS);
  sent += outcome.sent;
  answered += outcome.answered;
  failed += outcome.failures.length;
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  console.log(
    `${batch * SITES} of ${BATCHES * SITES} sites, ${sent} requests, ${answered} that a public handler answers, ${failed} failures, ${seconds} s`,
  );
  for (const failure of outcome.failures.slice(0, 10)) console.log(`seed ${seed}: ${failure}`);
}
const calls = await askAsPublic(createRandom(2_000), 2_223);
console.log(`${calls.sent} requests that fail or are slow, ${calls.told} of them explained to a service, ${calls.failures.length} failures`);
for (const failure of calls.failures.slice(0, 10)) console.log(failure);
failed += calls.failures.length;
process.exitCode = failed > 0 ? 1 : 0;
