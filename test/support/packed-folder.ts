/** Where the files of one run of Vitest share the packed package. */

import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @param runPid process id of Vitest, which starts a process for each file */
export function packedFolder(runPid: number): string {
  return join(tmpdir(), `postern-packed-${runPid}`);
}

/** Called by Vitest at the end of a run, and at its begin: another run may have had the same process id. */
export function teardown(): void {
  rmSync(packedFolder(process.pid), { recursive: true, force: true });
}
export { teardown as setup };
