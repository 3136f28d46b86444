/*
 * The health endpoint: named checks, each under a time limit, and the state of a service that drains (SPEC 2.1).
 *
 * Reasons of a failure go to the log; the document has only the names and results.
 */

import { monotonicNow } from '../base/clock.js';
import { builtin } from '../base/builtin.js';
import { ignoreRejection } from '../base/promises.js';
import { TIME_LIMIT, within } from '../base/deadline.js';
import { reply, type Reply } from '../answer/reply.js';
import { logSafely, type Logger } from '../base/log.js';
import { assertOptions } from '../base/options-check.js';
import { FRAMEWORK_VERSION } from '../base/version.js';

/** Tests one dependency; a rejection, `false`, or no answer in time is a failure. */
export type HealthCheck = (signal: AbortSignal) => unknown;

/** Settings of one check. */
export interface HealthCheckOptions {
  /** Time limit in ms, after which the signal aborts. Default: 1000. */
  timeout?: number | undefined;
}

/** `OK`, `FAIL` while a check fails, `DRAINING` once the service closes. */
export type HealthStatus = 'OK' | 'FAIL' | 'DRAINING';

/** The health document. */
export interface HealthDocument {
  /** The name of the service. */
  service: string;
  /** The version of the service. */
  application_version: string;
  /** `OK`, `FAIL` while a check fails, or `DRAINING` while the application closes. */
  status: HealthStatus;
  /** The version of Postern. */
  framework_version: string;
  /** The address of the host; absent while the process has no file descriptor left to ask for it. */
  ip?: string;
  /** The result of each check, by name; absent without checks. */
  checks?: Record<string, { status: 'OK' | 'FAIL'; time: string }>;
}

interface Check {
  readonly name: string;
  readonly run: HealthCheck;
  readonly timeoutMs: number;
  failing: boolean;
}

type CheckResults = NonNullable<HealthDocument['checks']>;

/** The checks of one application and its readiness. */
export class Health {
  readonly #service: string;
  readonly #version: string;
  readonly #logger: Logger;
  readonly #checks = new Map<string, Check>();
  #round: Promise<CheckResults> | undefined;
  #draining = false;
  #ip: string | undefined;

  /** @internal */
  constructor(service: string, version: string, logger: Logger) {
    this.#service = service;
    this.#version = version;
    this.#logger = logger;
  }

  /**
   * Adds a named check. Checks run concurrently, once for all probes that come while they run.
   *
   * @throws {TypeError} when the name is taken or empty, or an option is unknown or invalid
   *
   * @example
   * app.health.check('database', (signal) => users.ping(signal), { timeout: 500 });
   */
  check(name: string, run: HealthCheck, options: HealthCheckOptions = {}): this {
    if (typeof name !== 'string' || name === '') throw new TypeError('a health check needs a name');
    if (this.#checks.has(name)) throw new TypeError(`health check "${name}" exists already; rename one`);
    if (typeof run !== 'function') throw new TypeError(`health check "${name}" needs a function`);
    assertOptions(`health check "${name}"`, options, { timeout: TIME_LIMIT });
    const { timeout = 1000 } = options;
    this.#checks.set(name, { name, run, timeoutMs: timeout, failing: false });
    this.#round = undefined;
    return this;
  }

  /** The state after the latest run of the checks: they are not run for it. */
  get status(): HealthStatus {
    if (this.#draining) return 'DRAINING';
    return [...this.#checks.values()].some(({ failing }) => failing) ? 'FAIL' : 'OK';
  }

  /**
   * Address of this instance: its first external IPv4 one, else `127.0.0.1`. Undefined while the process has no file
   * descriptor left to ask for it.
   */
  get ip(): string | undefined {
    return (this.#ip ??= instanceAddress());
  }

  /** Turns readiness off for good. */
  drain(): void {
    this.#draining = true;
  }

  /** Runs the checks, or waits for the round that runs, and reports. */
  async report(): Promise<HealthDocument> {
    const checks = this.#checks.size === 0 ? undefined : await (this.#round ??= this.#runChecks());
    const { ip } = this;
    return {
      service: this.#service,
      application_version: this.#version,
      status: this.status,
      framework_version: FRAMEWORK_VERSION,
      ...(ip !== undefined && { ip }),
      ...(checks && { checks: structuredClone(checks) }),
    };
  }

  /** The endpoint: 200 when healthy, else 503 with the same document. */
  async answer(): Promise<Reply> {
    const document = await this.report();
    return reply(document, { status: document.status === 'OK' ? 200 : 503 });
  }

  async #runChecks(): Promise<CheckResults> {
    const checks = [...this.#checks.values()];
    const results = await Promise.all(checks.map(async (check) => [check.name, await this.#runCheck(check)] as const));
    // With a check that was added meanwhile, the latest round is another one.
    if (checks.length === this.#checks.size) this.#round = undefined;
    return Object.fromEntries(results);
  }

  async #runCheck(check: Check): Promise<CheckResults[string]> {
    const startedAtMs = monotonicNow();
    const { failure } = await outcomeOf(check);
    const failing = failure !== null;
    ignoreRejection(failure);
    // Only a change is logged: a check that stays broken would add a line with every probe.
    if (failing && !check.failing)
      logSafely(this.#logger, 'warn', { check: check.name, err: failure }, 'health check fails');
    if (!failing && check.failing) logSafely(this.#logger, 'warn', { check: check.name }, 'health check recovered');
    check.failing = failing;
    return { status: failing ? 'FAIL' : 'OK', time: `${Math.round(monotonicNow() - startedAtMs)} ms` };
  }
}

/** Runs a check. @returns the failure, wrapped, because a check may throw a promise; null if it does not fail */
async function outcomeOf({ name, run, timeoutMs }: Check): Promise<{ readonly failure: unknown }> {
  const abort = new AbortController();
  let failure: unknown;
  const finish = async (): Promise<void> => {
    try {
      failure = (await run(abort.signal)) === false ? new Error(`health check "${name}" returned false`) : null;
    } catch (error) {
      failure = error ?? new Error(`health check "${name}" rejected without a reason`);
    }
  };
  await within(timeoutMs, finish());
  if (failure !== undefined) return { failure };
  const late = new Error(`health check "${name}" did not finish within ${timeoutMs} ms`);
  abort.abort(late);
  return { failure: late };
}

/** Undefined where the system opens a socket for it, and there is no file descriptor left. */
function instanceAddress(): string | undefined {
  try {
    const addresses = Object.values(builtin('node:os').networkInterfaces()).flat();
    return addresses.find((one) => one?.family === 'IPv4' && !one.internal)?.address ?? '127.0.0.1';
  } catch {
    return undefined;
  }
}
