/** Starts applications for one test and reads what they log; everything is closed when the test ends. */

import { onTestFinished } from 'vitest';
import { Postern, type Listening, type Logger, type PosternOptions } from 'postern';

/** One logged entry. */
export interface Entry {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly object: Record<string, unknown>;
  readonly message: string | undefined;
}

/** A logger that keeps its entries. */
export function createRecorder(): Logger & { readonly entries: Entry[] } {
  const entries: Entry[] = [];
  const at = (level: Entry['level']) => (object: object, message?: string) => {
    entries.push({ level, object: object as Record<string, unknown>, message });
  };
  return { entries, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** An application that logs to nobody unless told. */
export function createApp(options: PosternOptions = {}, name = 'users'): Postern {
  const app = new Postern(name, { version: '1.4.2', logger: false, ...options });
  onTestFinished(() => app.close({ timeout: 1000 }));
  return app;
}

/** Listens on a free loopback port. */
export async function serve(app: Postern): Promise<Listening> {
  return app.listen({ host: '127.0.0.1', port: 0 });
}
