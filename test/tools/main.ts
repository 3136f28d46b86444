/** Runs the service as a process: writes where it listens, as JSON, and drains on SIGTERM. */

import { createService } from './service.js';

async function main(): Promise<void> {
  const app = await createService();
  const { url, monitor } = await app.run({ port: 0, host: '127.0.0.1' });
  console.log(JSON.stringify({ url, monitor: monitor?.url, pid: process.pid }));
}

void main();
