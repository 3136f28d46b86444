/*
 * The health endpoint: named checks, each under a time limit, and the state of a service that drains (SPEC 2.1).
 *
 * Reasons of a failure go to the log; the document has only the names and results.
 */

import { elapsedSince, monotonicNow } from '../base/clock.js';
import { builtin } from '../base/builtin.js';
import { ignoreRejection } from '../base/promises.js';
import { TIME, TIME_LIMIT, within } from '../base/deadline.js';
import { reply, type Reply } from '../answer/reply.js';
import { logSafely, type Logger } from '../base/log.js';
import { assertOptions, show } from '../base/options-check.js';
import { FRAMEWORK_VERSION } from '../base/version.js';

/** Tests one dependency; a rejection, `false`, or no answer in time is a failure. */
export type HealthCheck = (signal: AbortSignal) => unknown;

/** Settings of one check. */
export interface HealthCheckOptions {
  /** Time limit in ms, after which the signal aborts. Default: 1000. */
  timeout?: number | undefined;
  /** How long, in ms, a result is kept, so that requests do not run the check. Default: 0. */
  maxAge?: number | undefined;
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

type CheckResults = NonNullable<HealthDocument['checks']>;
type CheckResult = CheckResults[string];

interface Check {
  readonly name: string;
  readonly test: HealthCheck;
  readonly timeoutMs: number;
  readonly maxAgeMs: number;
  /** The run that has not ended: the next one waits for that, so that a check which hangs is not run again and again. */
  run: Run | null;
  /** The result of the latest run, and since when it is known. */
  last: { readonly result: CheckResult; readonly atMs: number } | null;
}

interface Run {
  readonly startedAtMs: number;
  /** Known when the run ends, or at its time limit. */
  readonly result: Promise<CheckResult>;
  /** Whether its time limit has passed, and whether the log says that it still runs. */
  lateness: 'none' | 'late' | 'logged';
}

/** How old, in ms, a result may be for a scrape, which does not wait for a newer one. */
const SCRAPED_AGE_MS = 5000;

/** The checks of one application and its readiness. */
export class Health {
  readonly #service: string;
  readonly #version: string;
  readonly #logger: Logger;
  readonly #checks = new Map<string, Check>();
  #draining = false;
  #ip: string | undefined;

  /** @internal */
  constructor(service: string, version: string, logger: Logger) {
    this.#service = service;
    this.#version = version;
    this.#logger = logger;
  }

  /**
   * Adds a named check. Checks run concurrently, each at most once at a time: requests that come within its time limit
   * share a run. Requests that come later, while it still runs, report `FAIL`.
   *
   * @throws {TypeError} when the name is taken or empty, or an option is unknown or invalid
   *
   * @example
   * app.health.check('database', (signal) => users.ping(signal), { timeout: 500 });
   */
  check(name: string, test: HealthCheck, options: HealthCheckOptions = {}): this {
    if (typeof name !== 'string' || name === '') throw new TypeError(`the name of a health check is ${show(name)}; give a text`);
    if (this.#checks.has(name)) throw new TypeError(`health check "${name}" exists already; rename one`);
    if (typeof test !== 'function') throw new TypeError(`health check "${name}" has no function; give it as the second argument`);
    assertOptions(`health check "${name}"`, options, { timeout: TIME_LIMIT, maxAge: TIME });
    const { timeout = 1000, maxAge = 0 } = options;
    this.#checks.set(name, { name, test, timeoutMs: timeout, maxAgeMs: maxAge, run: null, last: null });
    return this;
  }

  /** The state after the latest run of the checks: they are not run for it. */
  get status(): HealthStatus {
    if (this.#draining) return 'DRAINING';
    return [...this.#checks.values()].some(hasFailed) ? 'FAIL' : 'OK';
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

  /** Starts the checks whose results are too old for a scrape. @internal */
  refresh(): void {
    if (this.#draining) return;
    for (const check of this.#checks.values())
      if (check.run === null && ageOf(check) > Math.max(SCRAPED_AGE_MS, check.maxAgeMs)) this.#start(check);
  }

  /** Runs the checks whose results are too old, or waits for their runs, and reports. */
  async report(): Promise<HealthDocument> {
    const results = [...this.#checks.values()].map(async (check) => [check.name, await this.#resultOf(check)] as const);
    const checks = results.length > 0 && structuredClone(Object.fromEntries(await Promise.all(results)));
    const { ip } = this;
    return {
      service: this.#service,
      application_version: this.#version,
      status: this.status,
      framework_version: FRAMEWORK_VERSION,
      ...(ip !== undefined && { ip }),
      ...(checks && { checks }),
    };
  }

  /** The endpoint: 200 when healthy, else 503 with the same document. */
  async answer(): Promise<Reply> {
    const document = await this.report();
    return reply(document, { status: document.status === 'OK' ? 200 : 503 });
  }

  #resultOf(check: Check): CheckResult | Promise<CheckResult> {
    const { name, run, last, maxAgeMs } = check;
    if (run === null) return last !== null && ageOf(check) < maxAgeMs ? last.result : this.#start(check).result;
    if (run.lateness === 'none') return run.result;
    if (run.lateness === 'late') {
      run.lateness = 'logged';
      const seconds = Math.floor((monotonicNow() - run.startedAtMs) / 1000);
      this.#logFailure(name, new Error(`health check "${name}" is still running after ${seconds} s`));
    }
    return { status: 'FAIL', time: elapsedSince(run.startedAtMs) };
  }

  #start(check: Check): Run {
    const abort = new AbortController();
    const startedAtMs = monotonicNow();
    const outcome = outcomeOf(check, abort.signal);
    const finish = async (): Promise<CheckResult> => {
      let failure: unknown;
      await within(check.timeoutMs, outcome.then((ended) => { check.run = null; ({ failure } = ended); }));
      if (check.run === run) {
        run.lateness = 'late';
        failure = new Error(`health check "${check.name}" did not finish within ${check.timeoutMs} ms`);
        abort.abort(failure);
      }
      return this.#keep(check, failure, elapsedSince(startedAtMs));
    };
    const run: Run = { startedAtMs, result: finish(), lateness: 'none' };
    return (check.run = run);
  }

  /** @param failure null for a check that does not fail */
  #keep(check: Check, failure: unknown, time: string): CheckResult {
    ignoreRejection(failure);
    const wasFailing = hasFailed(check);
    const result: CheckResult = { status: failure === null ? 'OK' : 'FAIL', time };
    check.last = { result, atMs: monotonicNow() };
    // Only a change is logged: a check that stays broken would add a line with every probe.
    if (failure !== null && !wasFailing) this.#logFailure(check.name, failure);
    if (failure === null && wasFailing)
      logSafely(this.#logger, 'warn', { check: check.name }, 'health check recovered');
    return result;
  }

  #logFailure(check: string, err: unknown): void {
    logSafely(this.#logger, 'warn', { check, err }, 'health check fails');
  }
}

function hasFailed({ last }: Check): boolean {
  return last?.result.status === 'FAIL';
}

/** In ms; Infinity for a check that has no result. */
function ageOf({ last }: Check): number {
  return last === null ? Infinity : monotonicNow() - last.atMs;
}

/** Runs a check. @returns the failure, wrapped, because a check may throw a promise; null if it does not fail */
async function outcomeOf({ name, test }: Check, signal: AbortSignal): Promise<{ readonly failure: unknown }> {
  try {
    const isFalse = (await test(signal)) === false;
    return { failure: isFalse ? new Error(`health check "${name}" returned false`) : null };
  } catch (error) {
    return { failure: error ?? new Error(`health check "${name}" rejected without a reason`) };
  }
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
