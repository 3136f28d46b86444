/** A client of an event stream, which connects again when the stream ends. */

import { get } from 'node:http';
import { onTestFinished } from 'vitest';

/** A client, until the test is finished. */
export interface EventClient {
  /** Streams that it has had. */
  readonly opened: number;
  /** Whether it has one. */
  readonly isOpen: boolean;
  /** What ended in another way than a stream does. */
  readonly failures: readonly string[];
}

/** Starts one. */
export function listenTo(port: number, path: string): EventClient {
  const client = { opened: 0, isOpen: false, failures: [] as string[] };
  let isStopped = false;
  onTestFinished(() => void (isStopped = true));
  const connect = (): void => {
    client.isOpen = false;
    if (isStopped) return;
    const request = get({ port, path, host: '127.0.0.1', agent: false }, (response) => {
      client.isOpen = response.statusCode === 200;
      if (client.isOpen) client.opened += 1;
      else client.failures.push(String(response.statusCode));
      response.on('error', (error) => client.failures.push(error.message)).on('end', connect).resume();
    });
    request.on('error', (error) => client.failures.push(error.message));
    onTestFinished(() => void request.destroy());
  };
  connect();
  return client;
}
