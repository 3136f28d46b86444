/* Decides who may ask for what changes the process or reveals its memory. */

import type { Handler } from '../answer/context.js';
import { builtin } from '../base/builtin.js';
import { Forbidden } from '../base/errors.js';

/** 127.0.0.0/8 and ::1, also as IPv4 in IPv6. */
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/;

/**
 * Lets loopback peers ask, such as `kubectl port-forward`, and others with `Authorization: Bearer` and the token. A web
 * page never may, and a proxy on loopback speaks for others.
 *
 * @param token of the option `diagnostics`; without one only loopback peers may ask
 */
export function guard(token: string | undefined, handler: Handler): Handler {
  return (ctx) => {
    const { origin, authorization, forwarded, 'x-forwarded-for': proxied } = ctx.headers;
    if (origin !== undefined) throw new Forbidden('Requests of web pages are refused here.');
    const { remoteAddress = '' } = ctx.exchange.req.socket;
    const isLocal = LOOPBACK.test(remoteAddress) && forwarded === undefined && proxied === undefined;
    if (!isLocal && !hasToken(token, authorization))
      throw new Forbidden('Ask from loopback, or send the token of diagnostics: { token } as Authorization: Bearer.');
    return handler(ctx);
  };
}

function hasToken(token: string | undefined, authorization: string | undefined): boolean {
  // The name of the scheme is not case-sensitive (RFC 9110, section 11.1).
  const [, sent] = /^bearer +(.*)$/i.exec(authorization ?? '') ?? [];
  if (token === undefined || sent === undefined) return false;
  const [given, wanted] = [Buffer.from(sent), Buffer.from(token)];
  return given.length === wanted.length && builtin('node:crypto').timingSafeEqual(given, wanted);
}
