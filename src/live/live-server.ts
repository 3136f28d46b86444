/* Serves the live page on loopback, and the mesh behind it. */

import { Postern } from '../app/app.js';
import { randomHex } from '../base/clock.js';
import { HttpError } from '../base/errors.js';
import { reply } from '../http/reply.js';
import { renderPage } from './page.js';
import type { MeshReport } from './track.js';

/** Options of the live page: its data and its port. */
interface LiveOptions {
  readonly service: string;
  /** How many levels deep {@link ask} goes. */
  readonly depth: number;
  /** Asks the mesh, whatever it answers; it is not called again before it is done. */
  readonly ask: () => Promise<MeshReport>;
  /** How long that may take. */
  readonly timeoutMs: number;
  /** Port of the page. Default: any free port. */
  readonly port?: number;
}

export interface LivePage {
  readonly url: string;
  close(): Promise<void>;
}

const HOST = '127.0.0.1';

/**
 * Names under which a browser on this machine may open the page. Any other name leads here by a forged DNS answer,
 * so that an attacker's page can read what is on loopback (DNS rebinding).
 */
const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i;

/** @throws `EADDRINUSE` when the port is taken */
export async function startLive({ service, depth, ask, timeoutMs, port = 0 }: LiveOptions): Promise<LivePage> {
  const settings = {
    SERVICE_CONNECTIONS: [],
    REQUIRED_SERVICE_CONNECTIONS: [],
    SERVICE_URL_TEMPLATE: 'http://{service}',
  };
  const app = new Postern('live', { settings, logger: false, attachMonitorEndpoints: false });
  app.use((ctx, next) => {
    if (!LOOPBACK.test(ctx.headers.host ?? '')) throw new HttpError(403, 'This page is for its own machine.');
    return next();
  });
  app.get('/', () => {
    const nonce = randomHex(16);
    const page = renderPage({ service, depth, timeoutMs: timeoutMs + 2_000, nonce });
    return reply(page, { headers: { ...HEADERS, 'content-type': 'text/html; charset=utf-8', ...policyFor(nonce) } });
  });
  let asking: Promise<MeshReport> | undefined;
  app.get('/mesh.json', async () => {
    // However many pages look, the mesh is asked once at a time.
    asking ??= ask().finally(() => (asking = undefined));
    return reply(await asking, { headers: HEADERS });
  });
  const { url } = await app.listen({ host: HOST, port });
  return { url: `${url}/`, close: () => app.close() };
}

const HEADERS = {
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

function policyFor(nonce: string): { 'content-security-policy': string } {
  const ours = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'`;
  const others = "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  return { 'content-security-policy': `${ours}; ${others}` };
}
