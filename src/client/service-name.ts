/*
 * Names of services: a name is a segment of URLs.
 */

const SERVICE_NAME = /^[A-Za-z0-9._~-]+$/;

/** Whether a name is a URL path segment that no URL parser changes. */
export function isServiceName(name: unknown): name is string {
  return typeof name === 'string' && SERVICE_NAME.test(name) && name !== '.' && name !== '..';
}

/** @throws {TypeError} for any other name */
export function assertServiceName(name: unknown): void {
  if (!isServiceName(name))
    throw new TypeError(`service name ${JSON.stringify(name)} is not a URL path segment; use letters, digits and . _ ~ -`);
}
