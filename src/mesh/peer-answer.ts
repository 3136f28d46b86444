/*
 * The answer of a service, as it comes in: over HTTP, or in memory.
 */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Bytes } from '../payload/bytes.js';
import { fromHeaderList } from '../payload/header-list.js';
import { callError, type Callee } from './service-error.js';
import type { TryLimit } from './try-limit.js';

/** What an answer is read from: a message of `node:http`, or what stands in for one. */
export type AnswerSource = Readable & Pick<IncomingMessage, 'statusCode' | 'statusMessage' | 'headers' | 'rawHeaders'>;

/** How much of a body that is streamed may wait to be read. */
const WAITING_BYTES = 65_536;

/** Statuses without a body (Fetch, "null body status"). */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** The head of an answer with a status from 200 to 599; its body is read once, by one of the methods. */
export class PeerAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly #callee: Callee;
  readonly #source: AnswerSource;
  readonly #limit: TryLimit;
  #onFailure: ((reason: unknown) => void) | undefined;
  #failure: { readonly reason: unknown } | undefined;

  /**
   * @param limit ended when the body fails, which comes back as a call of {@link fail}; released when the body ends
   * @throws {ServiceError} 502 for a status out of range
   */
  constructor(callee: Callee, source: AnswerSource, limit: TryLimit) {
    const { service } = callee;
    const { statusCode = 0, statusMessage = '' } = source;
    if (statusCode < 200 || statusCode > 599)
      throw callError(callee, 502, `${service} answered with the status ${statusCode}`);
    this.status = statusCode;
    this.statusText = statusMessage;
    this.#callee = callee;
    this.#source = source;
    this.#limit = limit;
    source.on('error', (cause) => limit.end(callError(callee, 503, `${service} broke off its answer`, { cause })));
    source.on('end', () => limit.release());
  }

  get headers(): IncomingHttpHeaders {
    return this.#source.headers;
  }

  /** As they came. */
  toHeaders(): Headers {
    return fromHeaderList(this.#source.rawHeaders);
  }

  /** Fails the body, whoever reads it now or later. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#onFailure?.(reason);
  }

  /**
   * The whole body.
   *
   * @throws {ServiceError} 502 beyond `maxBytes`, 503 when the connection fails
   * @throws the reason for which the try was ended
   */
  bytes(maxBytes: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#whenFailed(reject);
      const source = this.#source;
      const { service } = this.#callee;
      const length = Number(source.headers['content-length'] ?? 0) || 0;
      const body = new Bytes(maxBytes, length);
      const refuse = (): void =>
        this.#limit.end(callError(this.#callee, 502, `${service} answered with more than ${maxBytes} bytes`));
      source.on('data', (chunk: Buffer<ArrayBuffer>) => {
        if (!body.add(chunk)) refuse();
      });
      source.on('end', () => resolve(body.read()));
      if (length > maxBytes && this.#hasBody) refuse();
    });
  }

  /** The body as it comes, which fails as {@link bytes} does; null where a status or method has none. */
  stream(): ReadableStream<Uint8Array> | null {
    const source = this.#source;
    if (!this.#hasBody) {
      source.resume();
      return null;
    }
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          let isOver = false;
          this.#whenFailed((reason) => {
            if (!isOver) controller.error(reason);
            isOver = true;
          });
          source.on('data', (chunk: Buffer) => {
            if (isOver) return;
            controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length));
            if ((controller.desiredSize ?? 0) <= 0) source.pause();
          });
          source.on('end', () => {
            if (!isOver) controller.close();
            isOver = true;
          });
        },
        pull: () => void source.resume(),
        cancel: (reason) => this.#limit.end(reason),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: WAITING_BYTES }),
    );
  }

  get #hasBody(): boolean {
    return this.#callee.method !== 'HEAD' && !BODILESS.has(this.status);
  }

  #whenFailed(onFailure: (reason: unknown) => void): void {
    this.#onFailure = onFailure;
    if (this.#failure !== undefined) onFailure(this.#failure.reason);
  }
}
