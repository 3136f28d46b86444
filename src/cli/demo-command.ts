/*
 * `postern demo`: three services that call each other and their live page, until the process is told to stop.
 */

import type { LivePage } from '../live/live-server.js';
import { defineCommand, untilSignal, whole, type Command } from './command.js';
import { startDemo, type Demo } from './demo-mesh.js';
import { showMesh } from './live-command.js';

const usage = `Usage: postern demo [--port P]

Starts three services that call each other, on loopback, and a live page of
their mesh, and prints what to try.

  --port P  first of three ports in a row. Default: 8000, or free ones
`;

const SERVICE_VARIABLES = [
  'SERVICE_CONNECTIONS',
  'REQUIRED_SERVICE_CONNECTIONS',
  'SERVICE_URL_TEMPLATE',
  'MONITOR_PORT',
  'MONITOR_HOST',
  'OTEL_SERVICE_NAME',
];

export const demo: Command = defineCommand(usage, '', { port: whole(1, 65_533, undefined) }, async ({ port }) => {
  // These are meant for one service, but the demo runs three of them in this process.
  for (const name of SERVICE_VARIABLES) delete process.env[name];
  const demo = await startDemo(port);
  const live = await showDemo(demo);
  const close = async (): Promise<void> => {
    await Promise.all([live.close(), demo.close()]);
  };
  return { text: describe(demo.urls, live.url), running: untilSignal(close) };
});

/** On the port after the services' ports, or a free port if it is taken. */
async function showDemo({ urls: { shop } }: Demo): Promise<LivePage> {
  const show = (port: number): Promise<LivePage> => showMesh({ service: 'shop', base: shop }, 3, port);
  return show(Math.min(Number(new URL(shop).port) + 3, 65_535)).catch(() => show(0));
}

/** Each address on a line of its own: terminals make a link of it, and a triple click selects nothing else. */
function describe({ shop, billing, stock }: Demo['urls'], live: string): string {
  const toTry = [
    ['The mesh, live in a browser', live],
    ['An order, through all three services', `${shop}/orders/1?quantity=2`],
    ['An error of stock, seen at shop', `${shop}/orders/3`],
    ['A parameter that is not allowed', `${shop}/orders/1?color=red`],
    ['Health', `${shop}/shop/health/`],
    ['The mesh, three levels deep', `${shop}/shop/ping/?depth=3`],
    ['Metrics for Prometheus', `${billing}/billing/metrics/`],
    ['Metrics as JSON', `${stock}/stock/metrics/?json`],
  ];
  return `Three services are running: shop asks billing, billing asks stock, and stock knows shop.

${toTry.map(([what, url]) => `${what}:\n${url}\n`).join('\n')}
To see its traces in a collector (OTLP/HTTP) on this machine:
OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 npx postern demo

Ctrl-C drains and stops them.
`;
}
