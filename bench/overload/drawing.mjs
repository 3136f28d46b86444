/**
 * Draws goodput over time as an SVG: a panel for each scenario and factor, a line for each framework.
 */

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

const WIDTH = 300;
const HEIGHT = 150;
const MARGIN = { left: 44, top: 46, gap: 56 };
const COLORS = ['#0b6e4f', '#c1121f', '#e09f3e', '#5f6c7b'];

/**
 * @param {readonly Run[]} runs
 * @param {string} note how the clients behave
 * @returns {string}
 */
export function drawGoodput(runs, note) {
  const scenarios = [...new Set(runs.map(({ scenario }) => scenario))];
  const factors = [...new Set(runs.map(({ factor }) => factor))];
  const frameworks = [...new Set(runs.map(({ framework }) => framework))];
  const width = MARGIN.left + factors.length * (WIDTH + MARGIN.gap);
  const height = MARGIN.top + scenarios.length * (HEIGHT + MARGIN.gap) + 10;
  const legend = frameworks.map(
    (name, i) => `<text x="${MARGIN.left + i * 165}" y="18" fill="${COLORS[i]}">${name}</text>`,
  );
  const panels = scenarios.flatMap((scenario, row) =>
    factors.map((factor, column) => {
      const own = runs.filter((run) => run.scenario === scenario && run.factor === factor);
      return `<g transform="translate(${MARGIN.left + column * (WIDTH + MARGIN.gap)} ${MARGIN.top + row * (HEIGHT + MARGIN.gap)})">${panel(own, frameworks)}</g>`;
    }),
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="11" role="img">
<title>Requests answered in time, each second, of services under more load than they can take</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${[...legend, ...panels].join('\n')}
<text x="${MARGIN.left}" y="${height - 14}">${note}</text>
</svg>
`;
}

function panel(runs, frameworks) {
  const [{ scenario, factor, capacity, good, loadFrom, loadTo }] = runs;
  const top = capacity * 1.2;
  const x = (second) => ((second * WIDTH) / good.length).toFixed(1);
  const y = (count) => (HEIGHT - (Math.min(count, top) * HEIGHT) / top).toFixed(1);
  const lines = runs.map((run) => {
    const points = run.good.map((count, second) => `${x(second + 0.5)},${y(count)}`).join(' ');
    return `<polyline points="${points}" fill="none" stroke="${COLORS[frameworks.indexOf(run.framework)]}" stroke-width="2"/>`;
  });
  return [
    `<rect x="${x(loadFrom)}" width="${x(loadTo - loadFrom)}" height="${HEIGHT}" fill="#eef1f4"/>`,
    `<text y="-8" font-weight="bold">${scenario}, ${factor}×</text>`,
    `<path d="M0 0V${HEIGHT}H${WIDTH}" fill="none" stroke="#8a949e"/>`,
    `<path d="M0 ${y(capacity)}H${WIDTH}" stroke="#8a949e" stroke-dasharray="3 3"/>`,
    `<text x="-6" y="${y(capacity)}" text-anchor="end" dominant-baseline="middle">${capacity}/s</text>`,
    `<text x="-6" y="${HEIGHT}" text-anchor="end" dominant-baseline="middle">0</text>`,
    `<text x="${WIDTH}" y="${HEIGHT + 15}" text-anchor="end">${good.length} s</text>`,
    ...lines,
  ].join('');
}
