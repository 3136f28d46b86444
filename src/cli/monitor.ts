/* Asks the monitor listener of a running service to do something. */

import { messageOf } from './output.js';
import { parseServiceUrl } from './mesh.js';

/**
 * @param given the URL of the service, as the user wrote it
 * @param target the endpoint, such as `profile/?heap`
 * @param remedies what to do, by the status of a refusal
 * @returns the name of the service, and its reply with a 2xx
 */
export async function askMonitor(
  given: string,
  method: string,
  target: string,
  token: string | undefined,
  remedies: Readonly<Record<number, string>>,
): Promise<{ service: string; reply: Response }> {
  const { service, base } = parseServiceUrl(given);
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const reply = await fetch(`${base}/${service}/${target}`, { method, headers }).catch((error: unknown) => {
    const reason = reasonOfFetch(error);
    throw new Error(`${service} can't be asked at ${base} (${reason}); give the URL of its monitor listener`, {
      cause: error,
    });
  });
  if (reply.ok) return { service, reply };
  const known: typeof remedies = { 403: 'ask from its own machine, or give --token', ...remedies };
  throw new Error(`${service} answered ${reply.status}; ${known[reply.status] ?? 'look at its log'}`);
}

/** Why `fetch` failed: the code of the system if there is one, such as `ECONNREFUSED`. */
export function reasonOfFetch(error: unknown): string {
  const { cause = error } = error as Error;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : messageOf(cause);
}
