/**
 * The live page: one document with its style and its script inside, so that it needs nothing from elsewhere.
 *
 * The script is the source of the functions of some modules: they are written and checked as TypeScript, and no second
 * copy of them is shipped. So a function there uses its arguments, the other functions and what every browser has;
 * each of them is exported, and their modules have no constants.
 */

import * as client from './client.js';
import * as element from './element.js';
import * as graph from './graph.js';
import * as layout from './layout.js';
import * as sparkline from './sparkline.js';
import { STYLE } from './style.js';
import * as table from './table.js';
import * as track from './track.js';

/** What the page is about. */
export interface PageOptions {
  readonly service: string;
  readonly depth: number;
  /** How long an answer for `mesh.json` may take. */
  readonly timeoutMs: number;
  /** Base64; permits this document's style and script, and no other. */
  readonly nonce: string;
}

/** The document. */
export function renderPage({ service, depth, timeoutMs, nonce }: PageOptions): string {
  const name = escapeHtml(service);
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
<p class="about"><span id="asked"></span> <span id="omitted"></span></p>
<p id="lost" role="status"></p>
<noscript><p>This page keeps itself up to date with a script, which your browser does not run.</p></noscript>
</header>
<main>
<section class="drawn" aria-labelledby="drawn">
<h2 id="drawn">Who asks whom</h2>
<div class="scroll" role="group" tabindex="0" aria-label="Graph, to be scrolled">
<svg id="graph" role="img" aria-label="The services of the table as a graph"></svg>
</div>
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
</section>
<section class="changed" aria-labelledby="changed">
<h2 id="changed">What changed</h2>
<p id="unchanged" class="about"></p>
<div class="scroll" role="log" tabindex="0" aria-labelledby="changed"><ol id="changes"></ol></div>
</section>
</main>
<script nonce="${nonce}">
'use strict';
${SCRIPT}
${client.startPage.name}(document, ${timeoutMs});
</script>
</body>
</html>
`;
}

const SCRIPT = [client, element, graph, layout, sparkline, table, track]
  .flatMap((module) => Object.values<unknown>({ ...module }))
  .join('\n');

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
