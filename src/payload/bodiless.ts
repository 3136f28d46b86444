/* Statuses without a body. */

/** Whether a reply of a status has no content (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5). */
export function isBodiless(status: number): boolean {
  return status === 205 || endsAtHead(status);
}

/** Whether a message of a status ends with its head, whatever its headers say (RFC 9112, section 6.3). */
export function endsAtHead(status: number): boolean {
  return status === 204 || status === 304;
}
