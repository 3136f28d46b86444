/** Requests with bodies, and an application that reads them in every way. */

import { connect } from 'node:net';
import type { Context, Postern, PosternOptions } from 'postern';
import { parseResponses, type RawResponse } from './raw.js';
import { createApp } from './serve.js';

export const CHUNKED = 'Transfer-Encoding: chunked\r\n';
export const FORM = 'application/x-www-form-urlencoded';

/** Every way to read a body. */
export const READERS: Readonly<Record<string, (ctx: Context) => Promise<unknown>>> = {
  json: (ctx) => ctx.json(),
  form: async (ctx) => [...(await ctx.form())],
  text: (ctx) => ctx.text(),
  bytes: async (ctx) => (await ctx.bytes()).length,
  stream: async (ctx) => {
    let length = 0;
    for await (const chunk of ctx.stream()) length += (chunk as Buffer).length;
    return length;
  },
};

/** An application with one route for each reader, and the names of those that got a body. */
export function createReading(options: PosternOptions = {}): { app: Postern; got: string[] } {
  const app = createApp(options);
  const got: string[] = [];
  for (const [name, read] of Object.entries(READERS)) {
    app.post(`/${name}`, async (ctx) => {
      const body = await read(ctx);
      got.push(name);
      return { body };
    });
  }
  return { app, got };
}

export const post = (path: string, headers: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n${body}`;
export const sized = (path: string, type: string, body: string): string =>
  post(path, `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`, body);

/** The first response to some bytes; a server may go on reading behind it. */
export async function answerTo(port: number, bytes: string): Promise<RawResponse> {
  const received = await new Promise<string>((resolve) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.from(bytes, 'latin1')));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0);
      if (end !== -1 && text.length >= end + 4 + length) socket.destroy();
    });
    socket.on('error', () => undefined).on('close', () => resolve(text));
  });
  const [response] = parseResponses(received);
  if (response === undefined) throw new Error('the server closed without a response');
  return response;
}
