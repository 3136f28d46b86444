/** Draws the diagrams of the explanations as SVG, for a light and a dark page. */

const STYLE = `
text { fill: #1c1f22; font: 13px system-ui, sans-serif; }
.quiet { fill: #5c636a; } .bold { font-weight: 600; }
.box { fill: #f3f3ef; stroke: #a3abb3; } .line { stroke: #5c636a; fill: none; }
.served { fill: #d7eadf; } .finish { fill: #f5e6c8; } .closed { fill: #ececec; }
.paper { fill: #fcfcfa; }
@media (prefers-color-scheme: dark) {
  text { fill: #ebecee; } .quiet { fill: #a0a8b0; }
  .box { fill: #1b1e21; stroke: #6c757e; } .line { stroke: #a0a8b0; }
  .served { fill: #1f4733; } .finish { fill: #57431a; } .closed { fill: #2b2f33; } .paper { fill: #121416; }
}`;

function svg(title: string, width: number, height: number, parts: readonly string[]): string {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`;
  const begin = `${head}\n<title>${title}</title>\n<style>${STYLE}\n</style>\n`;
  return `${begin}<rect class="paper" width="${width}" height="${height}"/>\n${parts.join('\n')}\n</svg>\n`;
}

function text(x: number, y: number, words: string, classes = '', anchor = 'start'): string {
  return `<text x="${x}" y="${y}" class="${classes}" text-anchor="${anchor}">${words}</text>`;
}

function arrow(x1: number, y1: number, x2: number, y2: number): string {
  const [tip, wing] =
    x1 === x2 ? [`${x2 - 4} ${y2 - 7}`, `${x2 + 4} ${y2 - 7}`] : [`${x2 - 7} ${y2 - 4}`, `${x2 - 7} ${y2 + 4}`];
  return `<path class="line" d="M${x1} ${y1}L${x2} ${y2}M${tip}L${x2} ${y2}L${wing}"/>`;
}

/**
 * Stations of a request from top to bottom: the file of `src` that is the station, and the replies that it sends
 * itself.
 */
const STATIONS: readonly (readonly [name: string, file: string, replies: string])[] = [
  ['head', 'wire/server', '400, 408, 414, 417, 431, 501, 505; the connection ends'],
  ['its turn on the connection', 'wire/connection', 'none: it waits until the reply before it is with the kernel'],
  ['route', 'answer/answers', '400: a wrong escape, a dot segment'],
  ['application middleware', 'answer/middleware', 'its own reply; 404 and 405 take the place of all below'],
  ['gate', 'answer/gate', '503 or 504: too late for its caller'],
  ['group and route middleware', 'answer/middleware', 'its own reply'],
  ['input', 'answer/schema-checks', '400, 413, 415: it does not fit'],
  ['handler', 'yours', 'its reply or its error'],
  ['reply or error', 'answer/reply, answer/errors', '500: it cannot be sent'],
  ['written', 'wire/writer', 'head and body, once'],
  ['settled', 'answer/observers', 'counted, timed and logged, once'],
];

/** The life of a request: what it passes, and where it can end. */
export function drawRequest(): string {
  const width = 830;
  const parts = STATIONS.flatMap(([name, file, replies], index) => {
    const y = 14 + index * 46;
    return [
      `<rect class="box" x="20" y="${y}" width="390" height="30" rx="6"/>`,
      text(34, y + 20, name, 'bold'),
      text(396, y + 20, file, 'quiet', 'end'),
      arrow(410, y + 15, 452, y + 15),
      text(462, y + 20, replies, 'quiet'),
      ...(index === STATIONS.length - 1 ? [] : [arrow(215, y + 30, 215, y + 46)]),
    ];
  });
  const bottom = 14 + STATIONS.length * 46;
  const note = 'A reply passes back through the middleware above its station before it is written.';
  const title = 'The stations of a request, and the replies that each of them can send';
  return svg(title, width, bottom + 32, [...parts, text(20, bottom + 16, note, 'quiet')]);
}

/** Width of a second in the picture of the drain, and where second 0 is. */
const SECOND = 29;
const ORIGIN = 150;

const at = (second: number): number => ORIGIN + second * SECOND;

function lane(
  row: number,
  name: string,
  spans: readonly (readonly [from: number, to: number, kind: string, words: string])[],
): string[] {
  const y = 56 + row * 44;
  const drawn = spans.flatMap(([from, to, kind, words]) => [
    `<rect class="${kind}" x="${at(from)}" y="${y}" width="${(to - from) * SECOND - 2}" height="32" rx="4"/>`,
    text(at(from) + 8, y + 21, words),
  ]);
  return [text(ORIGIN - 12, y + 21, name, 'bold', 'end'), ...drawn];
}

/** The drain with its defaults, second by second. */
export function drawDrain(): string {
  const marks = (
    [
      [0, 'SIGTERM'],
      [5, '5 s: delay is over'],
      [15, '15 s: timeout is over'],
    ] as const
  ).flatMap(([second, words]) => [
    `<path class="line" stroke-dasharray="3 3" d="M${at(second)} 34V196"/>`,
    text(at(second), 24, words, 'quiet', second === 0 ? 'middle' : 'start'),
  ]);
  const lanes = [
    ...lane(0, 'health', [[0, 5, 'finish', '503 DRAINING'], [5, 20, 'closed', 'the port is closed']]),
    ...lane(1, 'new requests', [[0, 5, 'served', 'are served'], [5, 20, 'closed', 'find a closed port']]),
    ...lane(2, 'work in flight', [
      [0, 5, 'served', 'continues'],
      [5, 15, 'finish', 'finishes; then exit code 0'],
      [15, 20, 'closed', 'cut off; exit code 1'],
    ]),
  ];
  return svg('The drain, with the default delay of 5 s and timeout of 10 s', 750, 210, [...marks, ...lanes]);
}
