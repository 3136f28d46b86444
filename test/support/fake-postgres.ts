/** Speaks as much of PostgreSQL's protocol (version 3) as a driver needs for a query with one row, and for none. */

import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';

const TEXT_OID = 25;

/** A database that runs. */
export interface FakePostgres {
  readonly url: string;
  readonly connections: ReadonlySet<Socket>;
  /** How many clients have said that they end their connection. */
  terminated(): number;
  /** Breaks every connection, and accepts no more. */
  stop(): void;
}

/** @param find the row for the one parameter of a query */
export async function startFakePostgres(
  find: (parameter: string) => Record<string, string> | undefined,
): Promise<FakePostgres> {
  const connections = new Set<Socket>();
  let terminated = 0;
  const server: Server = createServer((socket) => {
    connections.add(socket.on('error', () => undefined).on('close', () => connections.delete(socket)));
    let started = false;
    let parameter = '';
    let buffer: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      buffer = Buffer.concat([buffer, chunk]);
      for (;;) {
        // The first message has no type.
        const header = started ? 5 : 4;
        if (buffer.length < header) return;
        const end = header - 4 + buffer.readInt32BE(header - 4);
        if (buffer.length < end) return;
        const type = started ? String.fromCharCode(buffer[0] ?? 0) : 'startup';
        const body = buffer.subarray(header, end);
        buffer = buffer.subarray(end);
        if (type === 'startup') socket.write(Buffer.concat([message('R', int32(0)), READY]));
        else if (type === 'B') parameter = boundParameter(body);
        else if (type === 'Q') socket.write(Buffer.concat([message('C', text('SELECT 0')), READY]));
        else if (type === 'S')
          socket.write(Buffer.concat([message('1'), message('2'), ...rowOf(find(parameter)), READY]));
        else if (type === 'X') terminated += 1;
        started = true;
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = (): void => {
    server.close();
    for (const socket of connections) socket.destroy();
  };
  onTestFinished(stop);
  return {
    url: `postgres://user:secret@127.0.0.1:${(server.address() as AddressInfo).port}/shop`,
    connections,
    terminated: () => terminated,
    stop,
  };
}

const int16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const int32 = (value: number): Buffer => Buffer.concat([int16(value >>> 16), int16(value & 65_535)]);
const text = (value: string): Buffer => Buffer.from(`${value}\0`);
const message = (type: string, ...parts: Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
};
const READY: Buffer = message('Z', Buffer.from('I'));

/** Of a Bind message: names of portal and statement, formats, then the values. */
function boundParameter(body: Buffer): string {
  let at = body.indexOf(0) + 1;
  at = body.indexOf(0, at) + 1;
  at += 2 + 2 * body.readInt16BE(at) + 2;
  return body.toString('utf8', at + 4, at + 4 + body.readInt32BE(at));
}

function rowOf(row: Record<string, string> | undefined): Buffer[] {
  const columns = Object.keys(row ?? {}).map((name) => Buffer.concat([
    text(name), int32(0), int16(0), int32(TEXT_OID), int16(-1), int32(-1), int16(0),
  ]));
  const values = Object.values(row ?? {})
    .map((value) => Buffer.concat([int32(Buffer.byteLength(value)), Buffer.from(value)]));
  if (row === undefined) return [message('n'), message('C', text('SELECT 0'))];
  return [
    message('T', int16(columns.length), ...columns),
    message('D', int16(values.length), ...values),
    message('C', text('SELECT 1')),
  ];
}
