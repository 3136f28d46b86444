/**
 * The answer to a request over HTTP, as it comes in.
 */

import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Bytes } from '../payload/bytes.js';
import { hasBody, tooLarge, type PeerAnswer } from './peer.js';
import { callError, type Callee } from './service-error.js';
import type { TryLimit } from './try-limit.js';

/** How much of a body that is streamed may wait to be read. */
const WAITING_BYTES = 65_536;

/** An answer whose head is there. */
export class HttpAnswer implements PeerAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly #callee: Callee;
  readonly #res: IncomingMessage;
  readonly #end: (reason: unknown) => void;
  #onFailure: ((reason: unknown) => void) | undefined;
  #failure: { readonly reason: unknown } | undefined;

  /** @param end ends the whole try with a reason, which comes back by {@link fail} */
  constructor(
    callee: Callee,
    req: ClientRequest,
    res: IncomingMessage,
    end: (reason: unknown) => void,
    limit: TryLimit,
  ) {
    this.status = res.statusCode ?? 0;
    this.statusText = res.statusMessage ?? '';
    this.#callee = callee;
    this.#res = res;
    this.#end = end;
    res.on('error', (cause) => end(callError(callee, 503, `${callee.service} broke off its answer`, { cause })));
    res.on('end', () => {
      limit.release();
      // Whoever has answered will not read the rest of a body that is still being sent.
      if (!req.writableEnded) req.destroy();
    });
  }

  get headers(): IncomingHttpHeaders {
    return this.#res.headers;
  }

  get rawHeaders(): readonly string[] {
    return this.#res.rawHeaders;
  }

  /** Fails the body, whoever reads it now or later. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#onFailure?.(reason);
  }

  bytes(maxBytes: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#whenFailed(reject);
      const res = this.#res;
      const length = Number(res.headers['content-length'] ?? 0);
      const body = new Bytes(maxBytes, length);
      res.on('data', (chunk: Buffer<ArrayBuffer>) => {
        if (!body.add(chunk)) this.#end(tooLarge(this.#callee, maxBytes));
      });
      res.on('end', () => resolve(body.read()));
      if (length > maxBytes && hasBody(this.#callee.method, this.status)) this.#end(tooLarge(this.#callee, maxBytes));
    });
  }

  stream(): ReadableStream<Uint8Array> | null {
    const res = this.#res;
    if (!hasBody(this.#callee.method, this.status)) {
      res.resume();
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
          res.on('data', (chunk: Buffer) => {
            if (isOver) return;
            controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length));
            if ((controller.desiredSize ?? 0) <= 0) res.pause();
          });
          res.on('end', () => {
            if (!isOver) controller.close();
            isOver = true;
          });
        },
        pull: () => void res.resume(),
        cancel: (reason) => this.#end(reason),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: WAITING_BYTES }),
    );
  }

  #whenFailed(onFailure: (reason: unknown) => void): void {
    this.#onFailure = onFailure;
    if (this.#failure !== undefined) onFailure(this.#failure.reason);
  }
}
