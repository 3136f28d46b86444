/* Asks the monitor listener of a running service to do something. */

import { messageOf } from './output.js';
import { clientsOf, parseServiceUrl } from './mesh.js';

/** A profile takes up to a minute, and a heap snapshot may take longer. */
const TIMEOUT_MS = 300_000;

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
  const root = parseServiceUrl(given);
  const { service, base } = root;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const options = { method, headers, timeout: TIMEOUT_MS };
  const asked = clientsOf(root).client(service).fetch(`/${service}/${target}`, options);
  const reply = await asked.catch((error: unknown) => {
    const reason = reasonOfFailure(error);
    throw new Error(`${service} can't be asked at ${base} (${reason}); give the URL of its monitor listener`, {
      cause: error,
    });
  });
  if (reply.ok) return { service, reply };
  const known: typeof remedies = { 403: 'ask from its own machine, or give --token', ...remedies };
  throw new Error(`${service} answered ${reply.status}; ${known[reply.status] ?? 'look at its log'}`);
}

/** Why there is no answer: the code of the system if there is one, such as `ECONNREFUSED`. */
export function reasonOfFailure(error: unknown): string {
  const { cause = error } = error as Error;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : messageOf(cause);
}
