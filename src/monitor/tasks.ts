/* Counts asynchronous tasks (SPEC 2.2): requests being handled, and promises that the service asked to track. */

export class Tasks {
  readonly #requests: readonly { readonly active: number }[];
  #tracked = 0;
  readonly #whenSettled: (() => void)[] = [];

  /** @param requests of each listener */
  constructor(requests: readonly { readonly active: number }[]) {
    this.#requests = requests;
  }

  /** Tasks that are not settled. */
  get active(): number {
    return this.#requests.reduce((sum, { active }) => sum + active, this.#tracked);
  }

  /** Promises that are not settled. */
  get tracked(): number {
    return this.#tracked;
  }

  /** Active tasks and the resources that keep the event loop alive. */
  get total(): number {
    return this.active + process.getActiveResourcesInfo().length;
  }

  /** Counts a promise until it settles. @throws {TypeError} for anything else */
  track(promise: PromiseLike<unknown>, onRejection: (reason: unknown) => void): void {
    if (typeof (promise as Partial<PromiseLike<unknown>> | null)?.then !== 'function')
      throw new TypeError('track takes a promise');
    this.#tracked += 1;
    Promise.resolve(promise)
      .catch(onRejection)
      .then(() => {
        this.#tracked -= 1;
        if (this.#tracked === 0) for (const resolve of this.#whenSettled.splice(0)) resolve();
      });
  }

  /** Resolves as soon as no tracked promise is open. */
  settled(): Promise<void> {
    if (this.#tracked === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenSettled.push(resolve));
  }
}
