/** Runs the service inside of a test runner and checks it there. */

import { inspect } from 'node:util';
import { checkAnswers, checkDrain, checkLog, openClients, startCollector } from './checks.js';
import { createService } from './service.js';

/** @returns what is wrong */
export async function checkInProcess(): Promise<string[]> {
  const collector = await startCollector();
  Object.assign(process.env, collector.env);
  const errors: string[] = [];
  const quiet = (): void => undefined;
  const error = (entry: object): void => void errors.push(inspect(entry, { depth: 4 }));
  const app = await createService({ debug: quiet, info: quiet, warn: quiet, error });
  try {
    const { url, monitor } = await app.listen({ port: 0, host: '127.0.0.1' });
    const clients = await openClients({ url, monitor: monitor?.url ?? '' });
    const problems = await checkAnswers(clients);
    problems.push(...(await checkDrain(clients, () => void app.close())));
    await app.close();
    return [...problems, ...checkLog(errors), ...collector.check()];
  } finally {
    collector.close();
    await app.close({ timeout: 0 });
  }
}
