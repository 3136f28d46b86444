/* Serves the live page on loopback, and the report of the mesh that it shows. */

import { readFileSync } from 'node:fs';
import { Postern } from '../app/app.js';
import { clearInterval, Date, randomHex, setInterval } from '../base/clock.js';
import { HttpError } from '../base/errors.js';
import { reply } from '../answer/reply.js';
import { STYLE } from './style.js';
import { describeChanges, follow, type ChangeLine, type LiveReport, type MeshReport, type Track } from './track.js';

/** How often, in ms, the mesh is asked while no page asks. */
const UNSEEN_MS = 15_000;
const KEPT_MS = 3_600_000;
const MAX_CHANGES = 500;

/** Options of the live page: its data and its port. */
interface LiveOptions {
  readonly service: string;
  /** How many levels deep {@link ask} goes. */
  readonly depth: number;
  /** Asks the mesh, whatever it answers; it is not called again before it is done. */
  readonly ask: () => Promise<MeshReport>;
  /** How long that may take. */
  readonly timeoutMs: number;
  /** Port of the page; 0 picks a free one. */
  readonly port: number;
}

export interface LivePage {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Names under which a browser on this machine may open the page. Any other name leads here by a forged DNS answer,
 * so that an attacker's page can read what is on loopback (DNS rebinding).
 */
const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i;

/** @throws `EADDRINUSE` when the port is taken */
export async function startLive(options: LiveOptions): Promise<LivePage> {
  const settings = {
    SERVICE_CONNECTIONS: [],
    REQUIRED_SERVICE_CONNECTIONS: [],
    SERVICE_URL_TEMPLATE: 'http://{service}',
  };
  // Before the server listens: nothing that a request needs is read from the disk later.
  const script = readFileSync(new URL('live-script.js', import.meta.url), 'utf8');
  const app = new Postern('live', { settings, logger: false, attachMonitorEndpoints: false, tracing: false });
  app.use((ctx, next) => {
    if (!LOOPBACK.test(ctx.headers.host ?? '')) throw new HttpError(403, 'This page is for its own machine.');
    return next();
  });
  app.get('/', () => {
    const nonce = randomHex(16);
    const ours = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'`;
    const policy = `${ours}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
    const own = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy };
    return reply(renderPage(options, script, nonce), { headers: { ...HEADERS, ...own } });
  });
  const look = remember(options);
  app.get('/mesh.json', async () => reply(await look(), { headers: HEADERS }));
  const { url } = await app.listen({ host: '127.0.0.1', port: options.port });
  const timer = setInterval(() => void look().catch(() => undefined), UNSEEN_MS);
  const close = (): Promise<void> => {
    clearInterval(timer);
    return app.close({ timeout: 0 });
  };
  return { url: `${url}/`, close };
}

/** Asks the mesh, once at a time however many pages look, and keeps what changed: a page that is reloaded knows it. */
function remember({ ask }: LiveOptions): () => Promise<LiveReport> {
  const since = Date.now();
  const changes: ChangeLine[] = [];
  let tracks: readonly Track[] = [];
  let asking: Promise<LiveReport> | undefined;
  const look = async (): Promise<LiveReport> => {
    const report = await ask();
    const now = Date.now();
    const followed = follow(tracks, report.edges, now);
    // The first report is not a change.
    if (tracks.length > 0) changes.push(...describeChanges(followed.changes).map((line) => ({ ...line, at: now })));
    tracks = followed.tracks;
    while (changes.length > MAX_CHANGES || (changes[0]?.at ?? now) < now - KEPT_MS) changes.shift();
    return { ...report, tracks, changes: [...changes], since };
  };
  return () => (asking ??= look().finally(() => (asking = undefined)));
}

const HEADERS = {
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** One document with its style and its script inside, so that it needs nothing from elsewhere. */
function renderPage({ service, depth, timeoutMs }: LiveOptions, script: string, nonce: string): string {
  const name = service.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${name}</title>
<link rel="icon" id="icon" href="data:,">
<style nonce="${nonce}">${STYLE}</style>
</head>
<body id="page" class="wide">
<header>
<p class="about"><b>${name}</b> and the mesh below it, ${depth === 1 ? 'one level' : `${depth} levels`} deep</p>
<h1 id="verdict">Asking…</h1>
<p id="asked" class="about"></p>
<p id="lost" role="status"></p>
<noscript><p>This page keeps itself up to date with a script, which your browser does not run.</p></noscript>
</header>
<main>
<section class="drawn" aria-labelledby="drawn">
<h2 id="drawn">Who asks whom</h2>
<div class="scroll" role="group" tabindex="0" aria-label="Graph, to be scrolled">
<svg id="graph" role="img" aria-label="The services of the table as a graph"></svg>
</div>
<template id="node"><svg><g class="node"><title></title><rect y="-17" height="34" rx="8" /><text x="14" y="5"></text></g></svg></template>
<template id="line"><svg><g class="edge"><path class="hit" /><path class="line" /><path class="arrow" d="M-7 -4l7 4l-7 4" /></g></svg></template>
<template id="label"><svg><g class="edge"><text></text></g></svg></template>
</section>
<section class="listed" aria-labelledby="listed">
<h2 id="listed">Services</h2>
<table role="table" aria-labelledby="listed">
<thead role="rowgroup"><tr role="row">
<th scope="col" role="columnheader" class="name">Service</th>
<th scope="col" role="columnheader" class="status">Status</th>
<th scope="col" role="columnheader" class="time">Time</th>
<th scope="col" role="columnheader" class="last">Last 60</th>
<th scope="col" role="columnheader" class="since">Since</th>
</tr></thead>
<tbody id="rows" role="rowgroup"></tbody>
</table>
<template id="row"><tr role="row">
<th scope="row" role="rowheader" class="name"><button type="button" aria-pressed="false"></button><span class="unseen"></span></th>
<td role="cell" class="status"><div><span class="code"></span> <span class="reason"></span></div></td>
<td role="cell" class="time"></td>
<td role="cell" class="last"><svg viewBox="0 0 180 28" preserveAspectRatio="none" role="img"><path class="line" d="M0 27H180" /><path class="answered" /><path class="failed" /></svg></td>
<td role="cell" class="since"><time></time></td>
</tr></template>
</section>
<section class="changed" aria-labelledby="changed">
<h2 id="changed">What changed</h2>
<p id="unchanged" class="about"></p>
<div class="scroll" role="log" tabindex="0" aria-labelledby="changed"><ol id="changes"></ol></div>
<div id="known" hidden>
<h2 id="failed">What failed or was slow</h2>
<div class="scroll" role="group" tabindex="0" aria-labelledby="failed"><ol id="failures"></ol></div>
</div>
<template id="change"><li><time></time><span></span></li></template>
</section>
</main>
<script type="module" nonce="${nonce}">
${script}
startPage(${timeoutMs + 2_000});
</script>
</body>
</html>
`;
}
