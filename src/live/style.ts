/* How the live page looks: calm and large, colour only for trouble, and nothing that moves when a number changes. */

export const STYLE: string = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#fcfcfa, #121416); --ink: light-dark(#1c1f22, #ebecee);
  --quiet: light-dark(#5c636a, #a0a8b0); --hairline: light-dark(#e3e3de, #2b2f33);
  --faint: light-dark(#f3f3ef, #1b1e21); --bar: light-dark(#a3abb3, #6c757e);
  --trouble: light-dark(#b3261e, #ff8f85); --trouble-paper: light-dark(#fdf1ef, #2a1a19);
  --slow: light-dark(#7a5200, #efc06a);
}
* { box-sizing: border-box; }
html {
  font: clamp(16px, 0.4vw + 12px, 21px)/1.45 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif;
}
body {
  margin: 0; background: var(--paper); color: var(--ink); font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere;
}
header, main { max-width: 96rem; margin: 0 auto; padding: 1.8rem clamp(1rem, 3vw, 3rem) 0; }
h1 {
  margin: 0.1rem 0 0.2rem; font-size: clamp(2.1rem, 4.4vw, 3.6rem); font-weight: 600; line-height: 1.1;
  letter-spacing: -0.022em;
}
h1.fails { color: var(--trouble); }
h2 { margin: 0 0 0.6rem; font-size: 0.95rem; font-weight: 600; color: var(--quiet); }
.about { margin: 0; color: var(--quiet); min-height: 1.45em; }
.about b { color: var(--ink); font-weight: 600; }
#lost {
  position: fixed; z-index: 1; inset: auto 1rem 1rem; max-width: 60rem; margin: 0 auto; padding: 0.8rem 1.2rem;
  border: 1px solid var(--trouble); border-radius: 10px; background: var(--trouble-paper);
}
#lost:empty { display: none; }
main {
  display: grid; grid-template-columns: minmax(0, 1fr); gap: 2rem clamp(2rem, 4vw, 4rem); padding-bottom: 3rem;
}
body:has(#lost:not(:empty)) :is(main, h1) {
  --ink: var(--quiet); --trouble: var(--quiet); --slow: var(--quiet); --trouble-paper: var(--paper);
}
section { min-width: 0; }
.scroll { overflow: auto; border-radius: 6px; }
:focus-visible { outline: 2px solid var(--ink); outline-offset: 3px; }
button, .reason, li span { unicode-bidi: isolate; }
button, .status div, li span {
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden;
}

table { width: 100%; border-collapse: collapse; }
th, td {
  padding: 0.2rem 1rem 0.2rem 0; border-bottom: 1px solid var(--hairline); text-align: left; font-weight: 400;
  vertical-align: middle;
}
thead th { padding-bottom: 0.5rem; font-size: 0.85rem; color: var(--quiet); }
th:last-child, td:last-child { padding-right: 0; }
:is(th, td):is(.time, .last, .since) { width: 1%; white-space: nowrap; }
:is(th, td).time { min-width: 4.6rem; text-align: right; padding-right: 1.6rem; }
th.name { width: 1%; min-width: 9rem; padding-right: 2rem; }
tbody tr { height: 2.7rem; }
tbody .name { padding-left: calc(var(--level) * 1.5rem); }
button {
  position: relative; width: max-content; max-width: 20rem; padding: 0; border: 0; background: none;
  color: inherit; font: inherit; font-weight: 600; text-align: left; white-space: pre-wrap; cursor: pointer;
}
.below button { padding-left: 1.1rem; }
.below button::before {
  content: ''; position: absolute; left: 0; top: 0; width: 0.6rem; height: 0.72em; border: solid var(--bar);
  border-width: 0 0 1px 1px; border-bottom-left-radius: 4px;
}
.status .code { color: var(--quiet); }
.status div { -webkit-line-clamp: 2; font-size: 0.9rem; line-height: 1.3; }
.fails .status .code, .fails button { color: var(--trouble); font-weight: 600; }
.slow td.time { color: var(--slow); font-weight: 600; }
.since, .gone :is(.time, button) { color: var(--quiet); }
.gone button { font-weight: 400; font-style: italic; }
.last svg { display: block; width: 180px; height: 28px; }
.last .line { stroke: var(--hairline); stroke-width: 2; stroke-dasharray: 2 1; }
.last .answered { fill: var(--bar); }
.last .failed { fill: var(--trouble); }
tbody tr.pointed { background: var(--faint); box-shadow: -0.6rem 0 0 var(--faint), 0.6rem 0 0 var(--faint); }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }

#graph { display: block; width: 100%; margin: 0 auto 0 0; }
#graph text { font-size: 15px; font-weight: 600; fill: var(--ink); white-space: pre; }
.node rect { fill: var(--paper); stroke: var(--bar); }
.node.fails rect { stroke: var(--trouble); stroke-width: 2; fill: var(--trouble-paper); }
.node.gone rect { stroke-dasharray: 2 4; }
#graph .gone text { fill: var(--quiet); font-weight: 400; }
#graph .fails text { fill: var(--trouble); }
.edge path { fill: none; stroke: var(--bar); stroke-width: 1.5; stroke-linejoin: round; }
#graph .edge text {
  pointer-events: none; text-anchor: middle; font-size: 14px; paint-order: stroke; stroke: var(--paper);
  stroke-width: 7px; stroke-linejoin: round; visibility: hidden;
}
#graph .edge:is(.fails, .slow, .pointed) text { visibility: visible; }
.edge.pointed path { stroke: var(--ink); }
.edge.fails path { stroke: var(--trouble); stroke-width: 2; }
.edge.pointed path { stroke-width: 2.5; }
.edge.fails .line { stroke-dasharray: 6 5; }
#graph .slow text { fill: var(--slow); }
.edge.gone .line { stroke-dasharray: 1 6; stroke-linecap: round; }
.edge.gone .arrow { opacity: 0.5; }
#graph .hit { stroke: transparent; stroke-width: 16; }

ol { margin: 0; padding: 0; list-style: none; }
li {
  display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0 1.1rem; padding: 0.45rem 0;
  border-bottom: 1px solid var(--hairline);
}
li span { -webkit-line-clamp: 4; }
li time { color: var(--quiet); }
li.fails span { color: var(--trouble); }
.changed .scroll { max-height: 32rem; }
#failures span { white-space: pre-wrap; overflow-wrap: anywhere; }
.tall .changed .scroll { max-height: 9rem; }

@media (min-width: 68rem) {
  .wide main { grid-template: 'drawn drawn' 'listed changed' / minmax(0, 2.2fr) minmax(0, 1fr); }
  .tall main { grid-template: 'listed changed' 11rem 'listed drawn' 1fr / minmax(0, 2.2fr) minmax(0, 1fr); }
  .drawn { grid-area: drawn; }
  .listed { grid-area: listed; }
  .changed { grid-area: changed; }
}
@media (max-width: 48rem) {
  thead { position: absolute; clip-path: inset(50%); }
  table, tbody { display: block; }
  tbody tr {
    display: grid; grid-template: 'name time' 'status since' 'last last' / minmax(0, 1fr) max-content;
    height: auto; padding: 0.5rem 0 0.4rem; border-bottom: 1px solid var(--hairline);
  }
  tbody tr.pointed { box-shadow: none; }
  th, td { display: block; padding: 0.1rem 0; border: 0; }
  tr :is(.name, .time, .last, .since) { width: auto; }
  tbody .name { grid-area: name; }
  tbody .status { grid-area: status; padding-right: 1rem; }
  tbody :is(.name, .status) { padding-left: calc(var(--level) * 0.8rem); }
  tbody .time { grid-area: time; padding-right: 0; }
  tbody .since { grid-area: since; text-align: right; font-size: 0.9rem; }
  tbody .last { grid-area: last; }
  .last svg { width: 100%; height: 16px; }
}
@media (forced-colors: active) {
  .last .answered { fill: CanvasText; }
  .last .failed { fill: Mark; }
}
`;
