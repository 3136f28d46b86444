/*
 * What `mesh.json` says: every edge of the mesh once, in the order in which the page lists them.
 */

/** The mesh below a service, as it answered just now. */
export interface MeshReport {
  readonly service: string;
  /** The asked service first, and each edge somewhere below the one that leads to its `from`. */
  readonly edges: readonly MeshEdge[];
  /** Edges that were left out, for there were too many. */
  readonly omitted: number;
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
