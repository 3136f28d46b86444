/** A minute of fuzzing with another seed each time; what fails is printed with the command that shows it again. */

import { execFile } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SECONDS = 60;
const run = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

test('a minute of random input finds nothing', async () => {
  const [failure, output] = await new Promise<[Error | null, string]>((resolve) => {
    const child = execFile(process.execPath, [run('../support/run.mjs'), run('main.ts'), '--seconds', String(SECONDS)], (error, stdout, stderr) => resolve([error, stdout + stderr]));
    // It has a minute, the tests beside it may be waiting for an answer.
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  });
  expect(failure, output).toBeNull();
}, 5 * SECONDS * 1000);
