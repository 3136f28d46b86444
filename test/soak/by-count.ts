/**
 * Memory by count: a plain request again and again over kept connections, the resident memory at each million.
 *
 * What is lost once a request or once a second shows here and not in minutes of slower load. Nothing forces a garbage
 * collection, because in production nothing does; somebody scrapes, because in production somebody does.
 */

import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

const CONNECTIONS = 32;
const STEP = 1_000_000;
const SCRAPE_EVERY_MS = 15_000;
/** How often memory is read in each million. */
const SAMPLES = 20;
/** What memory may grow by all the same, over two millions: eight bytes lost with each request would be more. */
const KEPT_BYTES = 10 * 1024 * 1024;
/**
 * V8 lets its young generation grow and shrink by 60 MB in the course of a run, which is nothing that anybody keeps.
 */
export const FIXED_YOUNG_GENERATION = ['--min-semi-space-size=16', '--max-semi-space-size=16'];
const REQUEST = Buffer.from('GET /hello HTTP/1.1\r\nHost: soak\r\n\r\n');

/**
 * Memory goes up and down with V8's old generation by tens of MiB; what is kept shows in the lowest of two millions.
 *
 * @returns what is wrong, if anything is; every answer is looked at
 */
export async function soakByCount(port: number, pid: number, requests: number): Promise<string | undefined> {
  const start = performance.now();
  const lowest: number[] = [];
  const scraper = setInterval(
    () => void fetch(`http://127.0.0.1:${port}/soak/metrics/`).then((answer) => answer.text()),
    SCRAPE_EVERY_MS,
  );
  try {
    for (let sent = 0; sent < requests; ) {
      const end = Math.min(sent + STEP, requests);
      const sizes: number[] = [];
      for (; sent < end; sent += STEP / SAMPLES) {
        await Promise.all(
          Array.from({ length: CONNECTIONS }, () =>
            ask(port, Math.ceil(Math.min(STEP / SAMPLES, end - sent) / CONNECTIONS)),
          ),
        );
        sizes.push(residentBytes(pid));
      }
      lowest.push(Math.min(...sizes));
      const perSecond = Math.round(end / ((performance.now() - start) / 1000));
      console.log(
        `${end} requests, ${perSecond}/s: rss ${mebibytes(sizes.at(-1) ?? 0)}, at least ${mebibytes(lowest.at(-1) ?? 0)} in this million`,
      );
    }
  } finally {
    clearInterval(scraper);
  }
  // The first million fills caches and pools.
  const first = Math.min(...lowest.slice(1, 3));
  const last = Math.min(...lowest.slice(3).slice(-2));
  return last < Infinity && last > first + KEPT_BYTES
    ? `rss grew from at least ${mebibytes(first)} in the second and third million to ${mebibytes(last)} in the last two`
    : undefined;
}

/** Sends `count` requests over one connection, each behind the answer to the one before. */
function ask(port: number, count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = count;
    let text = '';
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => void socket.write(REQUEST));
    socket.setEncoding('latin1').on('error', reject);
    socket.on('close', () => reject(new Error(`the connection ended with ${left} requests to go`)));
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (!text.endsWith('\r\n\r\nhello')) return;
      if (!text.startsWith('HTTP/1.1 200 OK\r\n')) {
        reject(new Error(`got ${JSON.stringify(text)}`));
        socket.destroy();
        return;
      }
      text = '';
      left -= 1;
      if (left > 0) socket.write(REQUEST);
      else {
        resolve();
        socket.end();
      }
    });
  });
}

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
