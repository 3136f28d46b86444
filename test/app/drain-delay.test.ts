/** How long requests are served after a signal, in virtual time. */

import { expect, onTestFinished, test, vi } from 'vitest';
import type { VirtualTime } from '../support/virtual-clock.js';

const time = vi.hoisted(() => ({ current: undefined as VirtualTime | undefined }));
vi.mock('../../src/base/clock.js', async (load) => {
  const { VirtualTime: Time } = await import('../support/virtual-clock.js');
  time.current = new Time();
  return time.current.replace(await load());
});

test.for([
  { env: '3000', signal: 'SIGTERM', options: {}, at: 3_000 },
  { env: '60000', signal: 'SIGTERM', options: { delay: 3_000 }, at: 3_000 },
  { env: '3000', signal: 'SIGINT', options: {}, at: 3_000 },
  { env: '', signal: 'SIGTERM', options: {}, at: 5_000 },
  { env: '', signal: 'SIGINT', options: {}, at: 0 },
] as const)(
  'with DRAIN_DELAY "$env" and $options, $signal is followed by $at ms in which requests are served',
  async ({ env, signal, options, at }) => {
    // What listens for signals is once in a process.
    vi.resetModules();
    vi.stubEnv('DRAIN_DELAY', env);
    const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never);
    const before = process.listeners(signal);
    const ours = (): NodeJS.SignalsListener[] => process.listeners(signal).filter((each) => !before.includes(each));
    onTestFinished(() => {
      exit.mockRestore();
      vi.unstubAllEnvs();
      for (const name of ['SIGTERM', 'SIGINT']) for (const each of ours()) process.off(name, each);
    });
    const { Postern } = await import('postern');
    const app = new Postern('users', { logger: false }).get('/', () => 'ok');
    const { url } = await app.run({ host: '127.0.0.1', port: 0, ...options });
    for (const listener of ours()) listener(signal);
    if (at > 0) {
      await expect.poll(() => fetch(`${url}/users/health/`).then((response) => response.status)).toBe(503);
      await time.current?.pass(at - 1);
      const { status, headers } = await fetch(`${url}/`);
      expect([status, headers.get('connection')]).toEqual([200, 'close']);
      expect(app.closing.aborted).toBe(false);
      await time.current?.pass(1);
    }
    await expect.poll(() => app.closing.aborted).toBe(true);
    await expect.poll(() => exit.mock.calls).toEqual([[0]]);
  },
);

test('without a timeout, a drain cuts what takes longer than 10 s', async () => {
  vi.resetModules();
  const { Postern } = await import('postern');
  const begun = vi.fn(() => new Promise(() => {}));
  const app = new Postern('users', { logger: false }).get('/', begun);
  const { url } = await app.listen({ host: '127.0.0.1', port: 0 });
  const outcome = vi.fn();
  void fetch(url).then(() => outcome('answered'), () => outcome('cut'));
  await expect.poll(() => begun.mock.calls.length).toBe(1);
  const closed = app.close();
  await expect.poll(() => app.closing.aborted).toBe(true);
  await time.current?.pass(9_999);
  expect(outcome.mock.calls).toEqual([]);
  await time.current?.pass(1);
  await closed;
  await expect.poll(() => outcome.mock.calls).toEqual([['cut']]);
});
