/* Maps an error of node:http's parser to the error that the client gets. */

import { HttpError } from '../base/errors.js';

/** The error of a `clientError` event. */
export interface ParserError extends Error {
  readonly code?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
  /** The parser's own words. */
  readonly reason?: string;
}

/** A request line whose method is a token (RFC 9110, section 5.6.2). */
const UNKNOWN_METHOD = /^[!#-'*+.^`|~\w-]+ +[^ ]+ +HTTP\/1\.[01]\r?$/;

/** Turns an error that `node:http` raised as a `clientError` into the exception that it means. */
export function parserErrorOf(error: ParserError): HttpError {
  const { code } = error;
  // Not the error itself: its `rawPacket` has headers and cookies, which must not get into a log.
  const cause = Object.assign(new Error(error.message), { code });
  const because = (statusCode: number, text: string): HttpError => new HttpError(statusCode, text, { cause });
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return because(408, 'The request took too long to arrive.');
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return because(413, 'The chunk extensions are too large.');
  if (isOfUnknownMethod(error)) return because(501, 'The method is not known here.');
  if (code !== 'HPE_HEADER_OVERFLOW') return because(400, 'The request is malformed.');
  if (isInRequestLine(error)) return because(414, 'The request target is too long.');
  return because(431, 'The header fields are too large.');
}

/** Whether the parser gave up before the first line of the request ended, as far as the packet at hand shows. */
function isInRequestLine({ rawPacket, bytesParsed }: ParserError): boolean {
  const parsed = rawPacket?.toString('latin1', 0, bytesParsed) ?? '';
  const start = parsed.lastIndexOf('\r\n\r\n');
  return /^[A-Z-]+ [^\r\n]*$/.test(start === -1 ? parsed : parsed.slice(start + 4));
}

/** Whether a request line, here as a whole, is one of HTTP but for an unknown method (RFC 9110, section 9.1). */
// "BREW /pot HTTP/1.1" rather than "EHLO mail.example"
function isOfUnknownMethod({ code, reason, rawPacket, bytesParsed = 0 }: ParserError): boolean {
  // A method of RTSP, `DESCRIBE / HTTP/1.1`.
  if (code === 'HPE_INVALID_CONSTANT') return reason?.startsWith('Invalid method for HTTP/') === true;
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return false;
  const start = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf('\n', bytesParsed - 1) + 1;
  const end = rawPacket.indexOf('\n', start);
  return end !== -1 && UNKNOWN_METHOD.test(rawPacket.toString('latin1', start, end));
}
