/** Sends bytes as they are and reads the answer: `fetch` would tidy what these tests are about. */

import { connect, type Socket } from 'node:net';
import { PATIENCE_MS } from './patience.js';

/** One response, taken apart. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** The headers of a request after which the server closes the connection. */
export const HEAD = 'Host: x\r\nConnection: close\r\n';

/** A GET request without a body; with the usual headers the server closes the connection behind it. */
export function get(path: string, headers = HEAD): string {
  return `GET ${path} HTTP/1.1\r\n${headers}\r\n`;
}

/**
 * Everything that a server sends until it closes the connection.
 *
 * @throws {Error} when the server neither sends a byte nor closes the connection
 */
export function rawExchange(port: number, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket: Socket = connect(port, '127.0.0.1');
    socket.setTimeout(PATIENCE_MS, () => {
      reject(new Error(`the server leaves the connection open after ${JSON.stringify(received)}`));
      socket.destroy();
    });
    socket.on('data', (chunk) => (received += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(received));
    socket.on('connect', () => socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes));
  });
}

/** The responses in what a server sent; the bodies must have a `content-length`, or end with the connection. */
export function parseResponses(text: string): RawResponse[] {
  const responses: RawResponse[] = [];
  let rest = text;
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) throw new Error(`no complete head in ${JSON.stringify(rest.slice(0, 200))}`);
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n');
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const length = headers['content-length'] === undefined ? rest.length : Number(headers['content-length']);
    if (!Number.isInteger(length)) throw new Error(`content-length is ${headers['content-length']}`);
    const status = Number(statusLine.split(' ')[1]);
    const bodyLength = status < 200 || status === 204 || status === 304 ? 0 : length;
    responses.push({ status, headers, body: rest.slice(end + 4, end + 4 + bodyLength) });
    rest = rest.slice(end + 4 + bodyLength);
  }
  return responses;
}

/** One raw request, one response. */
export async function rawRequest(port: number, bytes: string | Buffer): Promise<RawResponse> {
  const text = await rawExchange(port, bytes);
  const [response] = parseResponses(text);
  if (response === undefined) throw new Error('the server closed without a response');
  return response;
}
