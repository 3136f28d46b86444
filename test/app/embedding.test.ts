/** An application inside a server that someone else made. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp } from '../support/serve.js';

test('app.handler serves inside a server that someone else made; attach gives its parse errors the uniform body', async () => {
  const app = createApp().get('/', () => 'embedded');
  const listen = async (server: Server): Promise<number> => {
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };
  const plain = await listen(createServer(app.handler));
  expect(await (await fetch(`http://127.0.0.1:${plain}/`)).text()).toBe('embedded');
  const server = createServer();
  app.attach(server);
  const attached = await listen(server);
  for (const head of ['nonsense', 'GET / HTTP/1.1']) {
    const [response] = parseResponses(await rawExchange(attached, `${head}\r\n\r\n`));
    expect([response?.status, JSON.parse(response?.body ?? '')])
      .toMatchObject([400, { message: 'Bad Request', error_code: { value: 999998 } }]);
  }
});
