/**
 * Draws goodput over time as an SVG: a panel for each scenario and factor, a line for each framework.
 *
 * Prints it for goodput.json, which `npm run bench -- overload` writes. `npm run docs` keeps it in docs/images.
 */

import { readFileSync } from 'node:fs';

/**
 * @typedef {object} Run
 * @property {string} scenario
 * @property {number} factor
 * @property {string} framework
 * @property {number[]} good requests in each second
 * @property {number} capacity per second
 * @property {number} loadFrom first second of the load
 * @property {number} loadTo first second after the load
 */

/** @typedef {{ setting: string, runs: readonly Run[] }} Goodput */

const WIDTH = 300;
const HEIGHT = 150;
const LEFT = 56;
const TOP = 70;
const GAP = 62;
/** Width of the words of the legend, by framework. */
const LEGEND = [75, 215, 180, 60];

/** The lines differ in lightness and in their dashes, for those who see or print no colours. */
const STYLE = `
text { fill: #1c1f22; font: 14px system-ui, sans-serif; } .bold { font-weight: 600; }
.paper { fill: #fcfcfa; } .load { fill: #e6e9ec; } .axis { stroke: #5c636a; fill: none; }
.run { fill: none; stroke-width: 2; }
.run0 { stroke: #003d29; stroke-width: 3.5; } .run1 { stroke: #a4161a; stroke-dasharray: 9 3; }
.run2 { stroke: #1a6fb5; stroke-dasharray: 5 4; } .run3 { stroke: #c26f0e; stroke-dasharray: 2 4; }
@media (prefers-color-scheme: dark) {
  text { fill: #ebecee; } .paper { fill: #121416; } .load { fill: #2b2f33; } .axis { stroke: #a0a8b0; }
  .run0 { stroke: #d8ffe9; } .run1 { stroke: #ff9b8f; } .run2 { stroke: #4aa3e8; } .run3 { stroke: #bb7012; }
}`;

/**
 * @param {Goodput} goodput
 * @returns {string}
 */
function drawGoodput({ setting, runs }) {
  const scenarios = [...new Set(runs.map(({ scenario }) => scenario))];
  const factors = [...new Set(runs.map(({ factor }) => factor))];
  const frameworks = [...new Set(runs.map(({ framework }) => framework))];
  const width = LEFT + factors.length * (WIDTH + GAP);
  const height = TOP + scenarios.length * (HEIGHT + GAP);
  const legend = frameworks.map((name, i) => {
    const x = LEGEND.slice(0, i).reduce((sum, words) => sum + words + 42, 16);
    return `<path class="run run${i}" d="M${x} 21h28"/><text x="${x + 34}" y="26">${name}</text>`;
  });
  const panels = scenarios.flatMap((scenario, row) =>
    factors.map((factor, column) => {
      const own = runs.filter((run) => run.scenario === scenario && run.factor === factor);
      const [x, y] = [LEFT + column * (WIDTH + GAP), TOP + row * (HEIGHT + GAP)];
      return `<g transform="translate(${x} ${y})">${panel(own, frameworks)}</g>`;
    }),
  );
  const caption = [
    'Requests answered in time, each second. Grey: the load. Thin dashes: the capacity.',
    'Each request states its deadline of 1 s, and its client disconnects when it has passed.',
    setting,
  ].map((line, i) => `<text x="16" y="${height + i * 20}">${line}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height + 56}" role="img">
<title>Requests answered in time, each second, of services under more load than they can take</title>
<style>${STYLE}
</style>
<rect class="paper" width="100%" height="100%"/>
${[...legend, ...panels, ...caption].join('\n')}
</svg>
`;
}

/**
 * @param {readonly Run[]} runs
 * @param {readonly string[]} frameworks
 */
function panel(runs, frameworks) {
  const [{ scenario, factor, capacity, good, loadFrom, loadTo }] = runs;
  const top = capacity * 1.2;
  const x = (second) => ((second * WIDTH) / good.length).toFixed(1);
  const y = (count) => (HEIGHT - (Math.min(count, top) * HEIGHT) / top).toFixed(1);
  const lines = runs.map((run) => {
    const points = run.good.map((count, second) => `${x(second + 0.5)},${y(count)}`).join(' ');
    return `<polyline class="run run${frameworks.indexOf(run.framework)}" points="${points}"/>`;
  });
  return [
    `<rect class="load" x="${x(loadFrom)}" width="${x(loadTo - loadFrom)}" height="${HEIGHT}"/>`,
    `<text class="bold" y="-10">${scenario}, ${factor}×</text>`,
    `<path class="axis" d="M0 0V${HEIGHT}H${WIDTH}"/>`,
    `<path class="axis" d="M0 ${y(capacity)}H${WIDTH}" stroke-dasharray="3 3"/>`,
    `<text x="-6" y="${y(capacity)}" text-anchor="end" dominant-baseline="middle">${capacity}/s</text>`,
    `<text x="-6" y="${HEIGHT}" text-anchor="end" dominant-baseline="middle">0</text>`,
    `<text x="${WIDTH}" y="${HEIGHT + 18}" text-anchor="end">${good.length} s</text>`,
    ...lines,
  ].join('');
}

process.stdout.write(drawGoodput(JSON.parse(readFileSync(new URL('goodput.json', import.meta.url), 'utf8'))));
