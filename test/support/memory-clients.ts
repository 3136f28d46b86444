/** Clients whose connections are in memory, and stay open: `app.request` makes a connection for each request. */

import { Duplex } from 'node:stream';
import type { Postern } from 'postern';

/** One connection; its client sends one request at a time. */
class Connection extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  #received = '';
  #onReply: ((status: number) => void) | null = null;

  ask(text: string, onReply: (status: number) => void): void {
    this.#received = '';
    this.#onReply = onReply;
    this.push(text);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#received += chunk.toString('latin1');
    const [, status, length, body = ''] =
      /^HTTP\/1.1 (\d+)[^]*?\r\ncontent-length: (\d+)\r\n[^]*?\r\n\r\n([^]*)/i.exec(this.#received) ?? [];
    const onReply = this.#onReply;
    if (onReply !== null && body.length === Number(length)) {
      this.#onReply = null;
      onReply(Number(status));
    }
    done();
  }
}

export class MemoryClients {
  readonly #idle: Connection[] = [];

  constructor(readonly app: Postern) {}

  /**
   * Sends a GET.
   *
   * @param onReply called with the status of a reply that is whole, and has a length
   * @returns its connection; a client that gives up destroys it before the reply
   */
  get(path: string, headers: Readonly<Record<string, string>>, onReply: (status: number) => void): Duplex {
    let connection = this.#idle.pop();
    if (connection === undefined || connection.destroyed) {
      connection = new Connection();
      this.app.server.emit('connection', connection);
    }
    const used = connection;
    const lines = Object.entries({ host: 'app', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    used.ask(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, (status) => {
      this.#idle.push(used);
      onReply(status);
    });
    return used;
  }
}
