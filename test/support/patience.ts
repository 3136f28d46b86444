/** How long, in ms, a test waits for what must happen. Only a hang takes longer, however busy the machine is. */
export const PATIENCE_MS = 50_000;
