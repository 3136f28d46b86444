/** Draws the top of `docs/grafana.json` as a page, with what a real Prometheus answers to each query. */

import { readPage } from '../support/markdown.js';
import { JOB, RATE_SECONDS, runPicturedMesh } from '../support/pictured-mesh.js';

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
}

interface Series {
  readonly name: string;
  readonly points: readonly (readonly [time: number, value: number])[];
}

const SHOWN_SECONDS = 60;
/** Row of the grid where the picture ends, after the mesh and the first charts of one service. */
const END_OF_GRID = 30;
const COLORS = ['#73bf69', '#f2cc0c', '#5794f2', '#ff9830', '#f2495c', '#b877d9', '#8ab8ff', '#fade2a'];
/** Size of a chart in pixels, and how much of it the labels of the axes need. */
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [428, 176, 62, 20];

/** Units of Grafana: the factor and the text after it, from the largest on. */
const UNITS: Readonly<Record<string, readonly (readonly [least: number, factor: number, text: string])[]>> = {
  s: [[1, 1, ' s'], [1e-3, 1e3, ' ms'], [0, 1e6, ' µs']],
  percentunit: [[0, 100, '%']],
  percent: [[0, 1, '%']],
  reqps: [[0, 1, ' req/s']],
};

const STYLE = `
* { margin: 0; box-sizing: border-box; }
body { width: 1400px; padding: 12px 16px 16px; background: #111217; color: #ccccdc; font: 12px Inter, sans-serif; }
header { display: flex; gap: 8px; align-items: center; height: 34px; margin-bottom: 8px; }
header h1 { font-size: 16px; font-weight: 500; margin-right: 12px; }
header span { border: 1px solid #34363d; border-radius: 2px; padding: 6px 10px; background: #181b1f; }
header span b { color: #6e9fff; font-weight: 500; margin-right: 10px; } header .time { margin-left: auto; }
main { display: grid; grid-template-columns: repeat(24, 1fr); grid-auto-rows: 30px; gap: 8px; }
h2 { font-size: 14px; font-weight: 500; align-self: center; } h2::before { content: '⌄'; margin-right: 8px; }
section { display: flex; flex-direction: column; padding: 8px 10px; overflow: hidden; background: #181b1f;
  border: 1px solid #25272e; border-radius: 2px; }
h3 { font-size: 13px; font-weight: 500; margin-bottom: 8px; } svg { display: block; flex: none; }
text { fill: #a2a3b0; font-size: 11px; } .grid { stroke: #26282e; shape-rendering: crispEdges; }
ul { list-style: none; padding: 0; margin-top: auto; display: flex; flex-wrap: wrap; gap: 3px 14px; font-size: 11px; }
i { display: inline-block; width: 13px; height: 3px; border-radius: 2px; margin-right: 5px; vertical-align: middle; }`;

/** The page. Making it takes a minute and a half, most of it load on a mesh. */
export async function drawDashboard(): Promise<string> {
  const { prometheus, until, stop } = await runPicturedMesh(SHOWN_SECONDS);
  try {
    const { panels } = JSON.parse(readPage('docs/grafana.json')) as { panels: Panel[] };
    const shown = panels.filter(({ gridPos }) => gridPos.y + gridPos.h <= END_OF_GRID);
    const drawn = await Promise.all(shown.map((panel) => drawPanel(panel, prometheus, until)));
    const chosen = Object.entries({ datasource: 'Prometheus', job: JOB, instance: 'All' });
    const variables = chosen.map(([name, value]) => `<span><b>${name}</b>${value}</span>`).join('');
    const header = `<h1>Postern</h1>${variables}<span class="time">Last ${SHOWN_SECONDS} seconds</span>`;
    const page = `<header>${header}</header><main>${drawn.join('')}</main>`;
    return `<!doctype html><meta charset="utf-8"><style>${STYLE}</style>${page}`;
  } finally {
    await stop();
  }
}

async function drawPanel(panel: Panel, prometheus: string, until: number): Promise<string> {
  const { x, y, w, h } = panel.gridPos;
  const place = `style="grid-area: ${y + 1} / ${x + 1} / span ${h} / span ${w}"`;
  if (panel.type === 'row') return `<h2 ${place}>${panel.title}</h2>`;
  const found = await Promise.all(panel.targets.map((target) => ask(prometheus, target, until)));
  const series = found.flat();
  if (series.length === 0) throw new Error(`"${panel.title}" has no data`);
  const legend = series.map(({ name }, index) => `<li><i style="background: ${colorOf(index)}"></i>${name}</li>`);
  const chart = drawChart(series, panel.fieldConfig.defaults.unit, until);
  return `<section ${place}><h3>${panel.title}</h3>${chart}<ul>${legend.join('')}</ul></section>`;
}

async function ask(prometheus: string, target: Panel['targets'][number], until: number): Promise<Series[]> {
  const variables: Record<string, string> = { $job: JOB, $instance: '.+', $__rate_interval: `${RATE_SECONDS}s` };
  const query = target.expr.replace(/\$\w+/g, (variable) => variables[variable] ?? variable);
  const asked = new URLSearchParams({ query, start: String(until - SHOWN_SECONDS), end: String(until), step: '1' });
  const answer = await fetch(`${prometheus}/api/v1/query_range?${asked}`);
  const { data } = (await answer.json()) as {
    data: { result: { metric: Record<string, string>; values: [number, string][] }[] };
  };
  return data.result.map(({ metric, values }) => ({
    name: target.legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ''),
    points: values.map(([time, value]) => [time, Number(value)]),
  }));
}

const colorOf = (index: number): string => COLORS[index % COLORS.length] ?? '';

function drawChart(series: readonly Series[], unit: string, until: number): string {
  const values = series.flatMap(({ points }) => points.map(([, value]) => value)).filter(Number.isFinite);
  const step = tidyStep(Math.max(...values) || 1);
  const count = Math.max(1, Math.ceil(Math.max(...values) / step));
  // Whole pixels keep the file small.
  const across = (time: number): number => WIDTH - Math.round(((until - time) / SHOWN_SECONDS) * (WIDTH - LEFT));
  const down = (value: number): number => 8 + Math.round((1 - value / (count * step)) * (HEIGHT - BOTTOM - 8));
  const lines = Array.from({ length: count + 1 }, (_, tick) => tick * step).map((value) => {
    const y = down(value);
    return `<path class="grid" d="M${LEFT} ${y}H${WIDTH}"/><text x="${LEFT - 8}" y="${y}" dy="4" text-anchor="end">${
      format(value, count * step, unit)}</text>`;
  });
  const times = Array.from({ length: SHOWN_SECONDS }, (_, second) => until - second).filter((time) => time % 15 === 0);
  const clock = times.map((time) => {
    const text = new Date(time * 1000).toISOString().slice(11, 19);
    return `<path class="grid" d="M${across(time)} 8V${HEIGHT - BOTTOM}"/><text x="${across(time)}" y="${HEIGHT - 4}"
      text-anchor="${until - time < 5 ? 'end' : 'middle'}">${text}</text>`;
  });
  const colored = series.map(({ points }, index) => ({ points, color: colorOf(index) }));
  // The shortest is drawn last, or longer ones of the same value would hide it.
  const curves = colored.sort((a, b) => b.points.length - a.points.length).map(({ points, color }) => {
    const known = points.filter(([, value]) => Number.isFinite(value));
    // Where a second has no value, the line has a gap.
    const path = known.map(([time, value], at) => {
      return `${time - (known[at - 1]?.[0] ?? 0) > 1 ? 'M' : 'L'}${across(time)} ${down(value)}`;
    });
    return `<path d="${path.join('')}" fill="none" stroke="${color}" stroke-width="1.5"/>`;
  });
  return `<svg width="${WIDTH}" height="${HEIGHT}">${[...lines, ...clock, ...curves].join('')}</svg>`;
}

/** The distance of three to six lines up to a value: 1, 2 or 5, and zeros. */
function tidyStep(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most / 3));
  return ([1, 2, 5].findLast((each) => each * power <= most / 3) ?? 1) * power;
}

function format(value: number, most: number, unit: string): string {
  const [, factor = 1, text = ''] = UNITS[unit]?.find(([least]) => most >= least) ?? [];
  return `${Number((value * factor).toPrecision(3))}${text}`;
}
