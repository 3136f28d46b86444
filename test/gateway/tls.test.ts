/**
 * HTTPS and HTTP/2 from clients, and what a site adds by hand, in real gateways.
 *
 * @module-tag gateways
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toCaddy, toHAProxy, toNginx } from '../../src/gateway.js';
import {
  checkGateway,
  startGateway,
  type GatewayName,
  type RunningGateway,
} from '../support/gateway-process.js';
import { exchange, routerOf, startService, type RunningService } from '../support/gateway-services.js';
import { CERTIFICATE, KEY } from '../support/localhost-certificate.js';
import { freePorts } from '../support/ports.js';

const EXPORTERS = { nginx: toNginx, haproxy: toHAProxy, caddy: toCaddy } as const;
const INCLUDED: Record<GatewayName, string> = {
  nginx: 'add_header X-Site added always;\nlocation = /robots.txt { return 200 "by hand"; }\n',
  haproxy:
    'http-after-response set-header X-Site added\nhttp-request return status 200 content-type text/plain string "by hand" if { path /robots.txt }\n',
  caddy: 'header X-Site added\nhandle /robots.txt {\n  respond "by hand"\n}\n',
};

let dir = '';
let service: RunningService;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'postern-tls-'));
  writeFileSync(join(dir, 'site.pem'), CERTIFICATE);
  writeFileSync(join(dir, 'site.pem.key'), KEY);
  service = await startService({ name: 'svc', open: ['GET /hello/:name'], closed: ['GET /private'] });
});
afterAll(async () => {
  await service?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** One request over HTTP/2. */
function ask2(port: number, path: string): Promise<{ status: number; body: string; headers: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`https://localhost:${port}`, { ca: CERTIFICATE });
    session.on('error', reject);
    const stream = session.request({ ':path': path });
    let [status, body, headers] = [0, '', {}];
    stream.on('response', (fields) => ([status, headers] = [Number(fields[':status']), { ...fields }]));
    stream.on('data', (data: Buffer) => (body += data.toString()));
    stream.on('end', () => {
      session.close();
      resolve({ status, body, headers });
    });
    stream.end();
  });
}

describe.each(['nginx', 'haproxy', 'caddy'] as const)('%s', (name) => {
  let [gateway, plain]: (RunningGateway | undefined)[] = [];
  let [port, plainPort] = [0, 0];
  let text = '';
  beforeAll(async () => {
    [port = 0, plainPort = 0] = await freePorts(2);
    writeFileSync(join(dir, `${name}.conf`), INCLUDED[name]);
    const services = [{ router: routerOf(service.routes), service: 'svc', upstream: service.url, prefix: '/api' }];
    text = EXPORTERS[name](services, {
      listen: `127.0.0.1:${port}`,
      hosts: ['localhost'],
      tls: { certificate: join(dir, 'site.pem'), key: join(dir, 'site.pem.key') },
    });
    gateway = await startGateway(name, text, [port]);
    plain = await startGateway(
      name,
      EXPORTERS[name](services, { listen: `127.0.0.1:${plainPort}`, include: join(dir, `${name}.conf`) }),
      [plainPort],
    );
  });
  afterAll(async () => {
    await gateway?.stop();
    await plain?.stop();
  });

  test('the configuration is taken without a complaint', () => {
    expect(checkGateway(name, text)).toBe('');
  });

  test('serves HTTPS by the certificate it was given, over HTTP/1.1 and HTTP/2', async () => {
    const seen = JSON.parse((await ask2(port, '/api/hello/x?y')).body) as {
      target: string;
      headers: Record<string, string>;
    };
    expect(seen).toMatchObject({
      target: '/hello/x?y',
      headers: { 'x-forwarded-proto': 'https', host: expect.stringMatching(/^localhost/) as string },
    });
    const status = await new Promise((resolve, reject) => {
      request({ port, host: 'localhost', path: '/api/hello/x', ca: CERTIFICATE }, (response) =>
        resolve(response.resume().statusCode),
      )
        .on('error', reject)
        .end();
    });
    expect(status).toBe(200);
  });

  test('refuses over HTTP/2 as over HTTP/1.1', async () => {
    for (const path of ['/api/private', '/api//hello/x', '/api/x/../hello/y', '/hello/x', '/api/hello']) {
      const { status, body } = await ask2(port, path);
      expect([path, status]).toEqual([path, 404]);
      expect(JSON.parse(body)).toMatchObject({ error_code: { value: 999998 } });
    }
  });

  test('what a site adds by hand is for all of it, what is refused included', async () => {
    const ask = (target: string): ReturnType<typeof exchange> =>
      exchange(plainPort, `GET ${target} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n`);
    expect((await ask('/api/hello/x')).headers['x-site']).toBe('added');
    const refused = await ask('/api/private');
    expect([refused.status, refused.headers['x-site']]).toEqual([404, 'added']);
    expect(await ask('/robots.txt')).toMatchObject({ status: 200, body: 'by hand' });
  });
});
