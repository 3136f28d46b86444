/** Promises that are tracked. */

import { expect, test } from 'vitest';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

test('track counts a promise until it settles, gives it back, and logs a rejection', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 'tracked task failed');
  const active = async (): Promise<number> =>
    ((await (await app.request('/users/metrics/?json')).json()) as { active_task_count: number }).active_task_count;
  let settle = (): void => undefined;
  const task = new Promise<void>((_resolve, reject) => (settle = () => reject(new Error('task'))));
  expect(app.track(task)).toBe(task);
  expect(await active()).toBe(2);
  settle();
  await expect(task).rejects.toThrow('task');
  expect(await active()).toBe(1);
  expect(logger.entries).toMatchObject([{ level: 'error', object: { err: { message: 'task' } } }]);
});
