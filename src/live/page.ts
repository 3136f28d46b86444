/*
 * The live page: one document with its style and its script inside, so that it needs nothing from elsewhere.
 *
 * The script is the source of functions of some modules: they are written and checked as TypeScript, and no second copy
 * of them is shipped. So a function there uses its arguments, the other functions and what every browser has; each of
 * them is listed here, and their modules have no constants.
 */

import { describeVerdict, getReport, iconOf, startPage } from './client.js';
import { copyOf, part, setState, setText, setTime, svgElement, tellOf } from './element.js';
import { createGraph, createNode } from './graph.js';
import { arrange, drawBack, drawForward, findLayers, layOut } from './layout.js';
import { STYLE } from './style.js';
import {
  createRow,
  createTable,
  describeHistory,
  describeMoment,
  describeTime,
  drawSparkline,
  updateRow,
} from './table.js';
import { describeChange, describeChanges, describeDuration, failing, follow, nameEdge, stateOf } from './track.js';

const FUNCTIONS = [
  [describeVerdict, getReport, iconOf, startPage],
  [copyOf, part, setState, setText, setTime, svgElement, tellOf],
  [createGraph, createNode],
  [arrange, drawBack, drawForward, findLayers, layOut, drawSparkline],
  [createRow, createTable, describeHistory, describeMoment, describeTime, updateRow],
  [describeChange, describeChanges, describeDuration, failing, follow, nameEdge, stateOf],
].flat();

interface PageOptions {
  readonly service: string;
  readonly depth: number;
  /** How long an answer for `mesh.json` may take. */
  readonly timeoutMs: number;
  /** Base64; permits this document's style and script, and no other. */
  readonly nonce: string;
}

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
<template id="change"><li><time></time><span></span></li></template>
</section>
</main>
<script nonce="${nonce}">
'use strict';
${FUNCTIONS.join('\n')}
${startPage.name}(${timeoutMs});
</script>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
