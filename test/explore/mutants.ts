/** `npm run explore:mutants`: takes the mend of an earlier fault out again; the exploration must show each of them. */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { measureMutants, type Mutant } from '../support/mutants.js';

/** A fault; `caughtBy` is the sequence that shows it. */
interface ExploreMutant extends Mutant {
  /** The first version of Node.js whose streams show it. */
  readonly since?: number;
}

const MUTANTS: readonly ExploreMutant[] = [
  {
    name: 'HEAD leaks the stream of its GET route',
    file: 'http/writer.ts',
    find: 'if (isStream(body)) discard(body);',
    replace: '',
    caughtBy: 'head/stream one waits 2',
  },
  {
    name: 'large replies that wait are handed to node:http, which stops reading',
    file: 'pipeline/outbox.ts',
    find: 'if (res.socket === null) {',
    replace: 'if (res.socket === undefined) {',
    caughtBy: 'head/never+short/large+eager/early several waits 2',
  },
  {
    name: 'a reply that ctx.raw destroys does not end the connection',
    file: 'http/connection.ts',
    find: 'if (isCut(res)) this.cutBehind(exchange);\n    else if',
    replace: 'if',
    caughtBy: 'get/stream+get/destroy one waits 2',
    since: 24,
  },
  {
    name: 'the `connection: close` of a handler is not known',
    file: 'http/exchange.ts',
    find: 'return !res.shouldKeepAlive || res._last === true;',
    replace: 'return !res.shouldKeepAlive;',
    caughtBy: 'get/closes+bad-head one waits 2',
  },
  {
    name: 'a reply lands inside the other protocol',
    file: 'pipeline/pipeline.ts',
    find: 'refusal === null && this.#connectionOf(req.socket).isFree',
    replace: 'refusal === null',
    caughtBy: 'get/raw+upgrade one waits 2',
  },
  {
    name: 'a request behind one whose client left waits for its response for ever',
    file: 'http/connection.ts',
    find: 'if (this.socket.closed) disconnect();\n    else ',
    replace: '',
    caughtBy: 'get/held+get/held one resets 2',
  },
  {
    name: 'a callback that writes after the 400 for a malformed chunk ends the process',
    file: 'http/exchange.ts',
    find: 'dropLateHeaders(this.res);',
    replace: '',
    caughtBy: 'bad-body/held several waits 2',
  },
  {
    name: 'a body that waits with its request ends the connection',
    file: 'http/connection.ts',
    find: 'if (next.hasBody && !next.req.complete && !isDeferred) {',
    replace: 'if (false) {',
    caughtBy: 'get/quick+chunked/early+get/value one waits 1',
  },
];

const version = Number.parseInt(process.versions.node, 10);
const shown = MUTANTS.filter(({ since = 0 }) => since <= version);
const missed = measureMutants(shown, process.argv[3], ({ caughtBy }, root) => {
  const main = join(root, 'test/explore/main.ts');
  const { status } = spawnSync(process.execPath, [join(root, 'test/support/run.mjs'), main, '--only', caughtBy], {
    cwd: root,
  });
  return status === 1 ? [caughtBy] : [];
});
process.exit(missed === 0 ? 0 : 1);
