/* `postern profile`: a CPU profile or a heap snapshot of a running service, into a file. */

import { createWriteStream } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { MAX_PROFILE_SECONDS } from '../monitor/profile.js';
import { defineCommand, flag, text, UsageError, whole, type Command } from './command.js';
import { askMonitor } from './monitor.js';

const usage = `Usage: postern profile URL --cpu SECONDS | --heap --out FILE [--token TOKEN]

Writes what a service with the option diagnostics does, or what its heap holds,
into a file that the developer tools of browsers read.

  URL             http://host:port/<service>/ of its monitor listener
  --cpu SECONDS   a CPU profile of so many seconds, from 1 to ${MAX_PROFILE_SECONDS}
  --heap          a heap snapshot; the service stands still for it
  --out FILE      profile.cpuprofile or profile.heapsnapshot, for example
  --token TOKEN   the token of the service's option diagnostics, to ask from
                  elsewhere than its own machine
`;

const OPTIONS = { cpu: whole(1, MAX_PROFILE_SECONDS), heap: flag, out: text, token: text };

export const profile: Command = defineCommand(usage, 'URL', OPTIONS, async ({ cpu, heap, out, token }, given) => {
  if ((cpu === undefined) !== heap) throw new UsageError('give --cpu SECONDS or --heap, and not both');
  if (out === undefined) throw new UsageError('--out is missing; give the name of a file');
  // Before the service is asked: its snapshot would be lost.
  await access(dirname(out), constants.W_OK);
  const target = `profile/?${heap ? 'heap' : `cpu=${cpu}`}`;
  const { reply } = await askMonitor(given, 'POST', target, token, {
    404: 'give the URL of its monitor listener, and set its option diagnostics',
    409: 'wait until the profile that is being taken is done',
    503: 'too little memory is free for a snapshot',
  });
  await pipeline(reply.body ?? [], createWriteStream(out));
  return { text: `${out}\n` };
});
