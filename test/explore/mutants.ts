/**
 * `npm run explore:mutants`: makes faults in the files that own a connection, among them earlier faults whose mends are
 * taken out again. The exploration must show each of them.
 */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { measureMutants, type Mutant } from '../support/mutants.js';

/** How long, in ms, a sequence may take. With a fault that takes longer, the event loop has stopped to turn. */
const HANG_MS = 60_000;

/** `caughtBy` is the sequence that shows the fault. */
const MUTANTS: readonly Mutant[] = [
  {
    name: 'HEAD leaks the stream of its GET route',
    file: 'wire/writer.ts',
    find: 'free(outgoing);\n    body = null;',
    replace: 'body = null;',
    caughtBy: 'head/stream one waits',
  },
  {
    name: 'a reply counts as sent when its client is disconnected',
    file: 'wire/writer.ts',
    find: 'if (error == null && !socket.destroyed) settle();',
    replace: 'if (error == null || socket.destroyed) settle();',
    caughtBy: 'get/large one deaf',
  },
  {
    name: 'the `connection: close` of a handler is not known',
    file: 'wire/node-internals.ts',
    find: 'return !res.shouldKeepAlive || res._last === true;',
    replace: 'return !res.shouldKeepAlive;',
    caughtBy: 'get/closes+bad-head one waits',
  },
  {
    name: 'a reply lands inside the other protocol',
    file: 'wire/server.ts',
    find: 'if (!this.#connectionOf(req.socket).isFree) this.#refuseSocket(req, null);\n    else if (refusal === null) proceed();',
    replace: 'if (refusal === null) proceed();',
    caughtBy: 'get/raw+upgrade one waits',
  },
  {
    name: 'an upgrade is taken on a socket that takes no answer',
    file: 'wire/connection.ts',
    find: "this.#state === 'open' && this.socket.writable;",
    replace: "this.#state === 'open';",
    caughtBy: 'get/destroy+upgrade one waits',
  },
  {
    name: 'a request begins on a connection that takes no reply',
    file: 'wire/connection.ts',
    find: 'if (!this.socket.writable) return;',
    replace: '',
    caughtBy: 'get/bulk+get/value one deaf',
  },
  {
    name: 'a request with a body runs before its packet is parsed',
    file: 'wire/connection.ts',
    find: 'if (hasSocket) return this.#beginAfterPacket(exchange);',
    replace: 'if (hasSocket) return this.#begin(exchange);',
    caughtBy: 'chunked/early one waits',
  },
  {
    name: 'a request with a body that waited runs before its packet is parsed',
    file: 'wire/connection.ts',
    find: 'if (exchange.body !== null && !exchange.req.complete) this.#beginAfterPacket(exchange);\n    else this.#begin(exchange);',
    replace: 'this.#begin(exchange);',
    caughtBy: 'get/value+chunked/early one waits',
  },
  {
    name: 'a request that waited runs in the async context of the request before',
    file: 'wire/connection.ts',
    find: "res.once('socket', () => exchange.inContext(() => this.#beginWaiting(exchange)));",
    replace: "res.once('socket', () => this.#beginWaiting(exchange));",
    caughtBy: 'get/large+get/value one waits',
  },
  {
    name: 'a trailer does not end the connection',
    file: 'wire/connection.ts',
    find: "if (this.#state === 'open' && !(body !== null && closesByTrailer(req))) return;",
    replace: "if (this.#state === 'open') return;",
    caughtBy: 'closing-trailers/raw several waits',
  },
  {
    name: 'malformed bytes are answered inside a reply that broke off',
    file: 'wire/connection.ts',
    find: '      this.#answerNothingMore();\n      // In the next tick',
    replace: '      // In the next tick',
    caughtBy: 'get/failing+connect one waits',
  },
  {
    name: 'CONNECT is answered after a reply that says `connection: close`',
    file: 'wire/connection.ts',
    find: 'if (isClosing) this.#answerNothingMore();',
    replace: '',
    caughtBy: 'get/closes+connect one waits',
  },
  {
    name: 'a connection stays when its latest reply has promised to keep it',
    file: 'wire/connection.ts',
    find: 'if (this.#isBroken || !isClosing) this.#end();',
    replace: 'if (this.#isBroken && isClosing) this.#end();',
    caughtBy: 'closing-trailers/raw one deaf',
  },
  {
    name: 'a callback that writes after the 400 for a malformed chunk ends the process',
    file: 'wire/connection.ts',
    find: 'dropLateHeaders(res);',
    replace: '',
    caughtBy: 'bad-body/held several waits',
  },
  {
    name: 'a disconnect goes unnoticed after a refused upgrade',
    file: 'wire/connection.ts',
    find: '    this.socket.resume();\n',
    replace: '',
    caughtBy: 'get/never+upgrade+short/large one waits',
  },
  {
    name: 'requests that wait are not dropped when their client leaves',
    file: 'wire/connection.ts',
    find: 'for (const exchange of this.#waiting.splice(0)) this.#leave(exchange);',
    replace: '',
    caughtBy: 'get/never+get/value one resets',
  },
  {
    name: 'the rest of a long body is never read once its request begins',
    file: 'wire/early-requests.ts',
    find: '    this.readOn();\n  }',
    replace: '  }',
    caughtBy: 'get/large+long/value+long/value one waits',
  },
  {
    name: 'the process hangs when a request arrives while a large reply waits',
    file: 'wire/early-requests.ts',
    find: 'else if (!isHeldBack(this.socket)) nextTick(',
    replace: 'else nextTick(',
    caughtBy: 'get/large+expect/value+get/large one deaf',
  },
];

const missed = measureMutants(MUTANTS, process.argv[3], ({ caughtBy }, root) => {
  const main = join(root, 'test/explore/main.ts');
  const { status } = spawnSync(process.execPath, [join(root, 'test/support/run.mjs'), main, '--only', caughtBy], {
    cwd: root,
    timeout: HANG_MS,
    killSignal: 'SIGKILL',
  });
  return status === 0 ? [] : [caughtBy];
});
process.exit(missed === 0 ? 0 : 1);
