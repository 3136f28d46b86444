/**
 * The contenders, and one process of each.
 */

import { fileURLToPath } from 'node:url';
import { onMeasuredCore } from './cores.mjs';
import { start, stop } from './processes.mjs';

/**
 * @typedef {object} Contender
 * @property {string} name as printed
 * @property {string} file in `servers/`
 * @property {string} export its name there
 * @property {Record<string, string>} env
 */

/**
 * @typedef {object} Usage
 * @property {number} cpuMicros CPU time of the whole process since its start, user and system
 * @property {number} rssBytes
 * @property {number} peakBytes the most that it was
 */

const START_TIMEOUT_MS = 30_000;
const SERVE = fileURLToPath(new URL('serve.mjs', import.meta.url));

/** What every other contender is compared to. */
export const BARE = contender('bare', 'bare');

/** The bare server as a contender of its own: it shows how far apart two equal ones come out. */
export const CONTROL = { ...BARE, name: 'bare again (A/A)' };

/** Contenders of the scenarios that compare frameworks. */
export const FRAMEWORKS = [
  contender('bare tuned', 'bare'),
  contender('postern', 'postern'),
  contender('restana', 'restana'),
  contender('restana no prio', 'restana'),
  contender('fastify', 'fastify'),
  contender('fastify + schema', 'fastify'),
  contender('0http', '0http'),
  contender('polka', 'polka'),
  contender('hono', 'hono'),
  contender('h3', 'h3'),
  contender('koa', 'koa'),
  contender('express', 'express'),
];

/** Those of them that come near the bare server. */
export const LEADERS = FRAMEWORKS.filter(({ name }) =>
  ['bare tuned', 'postern', 'restana', 'fastify + schema', 'polka', 'hono'].includes(name),
);

/** Contenders that measure their requests, or export traces of them. */
export const OBSERVED = [
  contender('postern', 'postern'),
  contender('postern + traces', 'traced'),
  contender('fastify + OpenTelemetry', 'traced'),
  contender('bare + prom-client', 'bare'),
  contender('fastify + fastify-metrics', 'fastify'),
  contender('express + prom-client', 'express'),
];

/** Contenders that hold a body to a schema. */
export const CHECKING = [
  contender('bare tuned', 'bare'),
  contender('postern', 'postern'),
  contender('postern by hand', 'postern'),
  contender('fastify', 'fastify'),
  contender('fastify + schema', 'fastify'),
];

/** Contenders whose memory is looked at. */
export const SMALL_HEAP = [contender('postern', 'postern'), contender('fastify', 'fastify')];

/** The names that `--only` takes. */
export const NAMES = new Set([...FRAMEWORKS, ...OBSERVED, ...CHECKING].map(({ name }) => name));

/**
 * Those that the options ask for, another build of Postern among them if there is one; a quick run leaves out the slow.
 *
 * @param {readonly Contender[]} contenders
 * @param {import('./options.mjs').Options} options
 */
export function select(contenders, { only, dist, quick }) {
  const chosen = contenders.filter((one) =>
    only === undefined ? !quick || !FRAMEWORKS.includes(one) || LEADERS.includes(one) : only.includes(one.name),
  );
  if (dist !== undefined)
    chosen.push({ ...contender('postern', 'postern'), name: 'postern (--dist)', env: { POSTERN_DIST: dist } });
  return chosen;
}

/** One server process. */
export class Server {
  #child;
  /** @type {string} */
  url;
  /** @type {number} CPU time until it listened */
  startMicros;

  constructor(child, { port, cpuMicros }) {
    this.#child = child;
    this.url = `http://127.0.0.1:${port}`;
    this.startMicros = cpuMicros;
  }

  /**
   * @param {Contender} contender
   * @param {import('../servers/service.mjs').Spec} spec
   * @param {string} node
   * @param {readonly string[]} flags of Node.js
   * @param {typeof onMeasuredCore} where it runs
   * @throws {Error} when it does not listen in time
   */
  static async start(contender, spec, node, flags = [], where = onMeasuredCore) {
    const child = start(where([node, ...flags, SERVE, contender.file, contender.export, JSON.stringify(spec)]), {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { ...process.env, NODE_ENV: 'production', ...contender.env },
    });
    try {
      return new Server(child, await nextMessage(child, START_TIMEOUT_MS));
    } catch (error) {
      await stop(child);
      throw error;
    }
  }

  /** @returns {Promise<Usage>} */
  usage() {
    const answer = nextMessage(this.#child, START_TIMEOUT_MS);
    this.#child.send('usage');
    return answer;
  }

  stop() {
    return stop(this.#child);
  }
}

/** @returns {Contender} */
function contender(name, file) {
  return { name, file, export: name, env: {} };
}

/** The next message of a process, or why there will be none. */
function nextMessage(child, timeoutMs) {
  return new Promise((resolve, reject) => {
    let stderr = '';
    const timer = setTimeout(() => settle(reject, new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
    const onMessage = (message) => settle(resolve, message);
    const onError = (error) => settle(reject, error);
    const onExit = (code, signal) => settle(reject, new Error(`ended with ${code ?? signal}: ${reasonIn(stderr)}`));
    const onStderr = (chunk) => (stderr += chunk);
    const settle = (how, value) => {
      clearTimeout(timer);
      child.off('message', onMessage).off('error', onError).off('exit', onExit);
      child.stderr.off('data', onStderr).resume();
      how(value);
    };
    child.on('message', onMessage).on('error', onError).on('exit', onExit);
    child.stderr.on('data', onStderr);
  });
}

function reasonIn(stderr) {
  return stderr.split('\n').find((line) => /Error|ERR_|FATAL/.test(line)) ?? stderr.slice(0, 200);
}
