/* Follows each edge from report to report: its last answers, since when it has been so, and what changed. */

/** How an edge answered once; null when it was not reported. */
export type Sample = { readonly ms: number | null; readonly failed: boolean } | null;

/** An edge, as the page remembers it. */
export interface Track {
  readonly key: string;
  /** The edge as last reported. */
  readonly edge: MeshEdge;
  /** At most 60, the newest last. */
  readonly history: readonly Sample[];
  /** When its present state began, in ms of the epoch. */
  readonly since: number;
  /** Whether the last report was without it. */
  readonly gone: boolean;
}

/** A change of one edge. */
interface Change {
  readonly kind: 'fails' | 'answers' | 'vanishes' | 'appears';
  readonly edge: MeshEdge;
  /** Predicate of the line in the log, if no other edge changed in this way. */
  readonly text: string;
}

/**
 * Takes in a report.
 *
 * An edge that is not reported any more keeps its place. It leaves with the last of its answers, unless the service
 * that would report it doesn't answer either.
 */
export function follow(
  before: readonly Track[],
  edges: readonly MeshEdge[],
  now: number,
): { tracks: Track[]; changes: Change[] } {
  const known = new Map(before.map((track) => [track.key, track]));
  const changes: Change[] = [];
  const tracks = edges.map((edge): Track => {
    const key = JSON.stringify([edge.from, edge.to]);
    const was = known.get(key);
    const failed = edge.status !== 200;
    const history = [...(was?.history ?? []), { ms: edge.ms, failed }].slice(-60);
    const appears = was === undefined || was.gone;
    const stays = !appears && was.edge.status === edge.status;
    if (appears) changes.push({ kind: 'appears', edge, text: 'appears' });
    if (failed && !stays) changes.push({ kind: 'fails', edge, text: `fails: ${edge.status} ${edge.reason}` });
    if (!failed && !stays && !appears)
      changes.push({ kind: 'answers', edge, text: `answers again after ${describeDuration(now - was.since)}` });
    return { key, edge, history, since: stays ? was.since : now, gone: false };
  });
  const present = new Set(tracks.map(({ key }) => key));
  const answering = new Set(edges.filter(({ status }) => status === 200).map(({ to }) => to));
  let kept: string | undefined;
  for (const was of before) {
    if (!present.has(was.key)) {
      if (!was.gone) changes.push({ kind: 'vanishes', edge: was.edge, text: 'is out of sight' });
      const history = [...was.history, null].slice(-60);
      if (history.every((sample) => sample === null) && answering.has(was.edge.from ?? '')) continue;
      const index = tracks.findIndex(({ key }) => key === kept) + 1;
      tracks.splice(index, 0, { ...was, history, since: was.gone ? was.since : now, gone: true });
    }
    kept = was.key;
  }
  return { tracks, changes };
}

/** How an edge is, `slow` from half a second on; one that vanished does not fail. */
export function stateOf({ gone, edge: { status, ms } }: Track): 'gone' | 'fails' | 'slow' | 'fine' {
  if (gone) return 'gone';
  if (status !== 200) return 'fails';
  return ms !== null && ms >= 500 ? 'slow' : 'fine';
}

/** The edges that fail. */
export function failing(tracks: readonly Track[]): readonly Track[] {
  return tracks.filter((track) => stateOf(track) === 'fails');
}

/** Describes the changes in one report, a line for each kind of change. */
export function describeChanges(changes: readonly Change[]): { kind: string; text: string }[] {
  const words = { fails: 'fail', answers: 'answer again', vanishes: 'are out of sight', appears: 'appear' };
  return Object.entries(words).flatMap(([kind, verb]) => {
    const those = changes.filter((change) => change.kind === kind);
    const [first] = those;
    if (first === undefined) return [];
    if (those.length === 1) return [{ kind, text: `${nameEdge(first.edge)} ${first.text}` }];
    const listed = those.slice(0, 4).map(({ edge }) => nameEdge(edge) + (kind === 'fails' ? ` (${edge.status})` : ''));
    if (those.length > 4) listed.push(`and ${those.length - 4} more`);
    return [{ kind, text: `${those.length} ${verb}: ${listed.join(', ')}` }];
  });
}

/** `shop → billing`, or only the name of the service that was asked. */
function nameEdge({ from, to }: MeshEdge): string {
  return from === null ? to : `${from} → ${to}`;
}

/** `7 s`, `3 min 20 s`, `2 h 5 min`. */
export function describeDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** Data of the page: the present state, and what changed since the server began to look. */
export interface LiveReport extends MeshReport {
  readonly tracks: readonly Track[];
  /** Changes of the last hour, the oldest first; at most 500. */
  readonly changes: readonly ChangeLine[];
  /** When the server began to look, in ms of the epoch. */
  readonly since: number;
}

/** A line of the log. */
export interface ChangeLine {
  readonly kind: string;
  readonly text: string;
  /** Moment of the change, in ms of the epoch. */
  readonly at: number;
}

/** A failure with its calls, which are lines of their own. */
export interface FailureLine {
  /** ISO 8601; empty for what is so now. */
  readonly at: string;
  readonly text: string;
}

/** The mesh below a service, as it answered just now. */
export interface MeshReport {
  readonly service: string;
  /** The asked service first, and each edge somewhere below the one that leads to its `from`. */
  readonly edges: readonly MeshEdge[];
  /** Edges that were left out, for there were too many. */
  readonly omitted: number;
  /** Failures and slow requests, in the order of time; null without `--monitor`. */
  readonly failures: readonly FailureLine[] | null;
}

/** One service as another one saw it; no text has control characters. */
export interface MeshEdge {
  /** null for the service that was asked. */
  readonly from: string | null;
  readonly to: string;
  /** How far to indent: 0 for the service that was asked. */
  readonly level: number;
  readonly status: number;
  /** null when it said nothing of use. */
  readonly ms: number | null;
  /** Why it failed; empty for one that answered. */
  readonly reason: string;
}
