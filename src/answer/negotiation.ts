/*
 * Decisions by the headers of a request, as middleware for Express asks for them: which of several forms a client
 * prefers, whether it has the current one, which part it wants.
 *
 * Source: RFC 9110, sections 12.5 (negotiation), 13.1 (conditions) and 14.2 (ranges); accepts, type-is, fresh and
 * range-parser, which Express uses, where they differ.
 */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { builtin } from '../base/builtin.js';
import { Date } from '../base/clock.js';
import { parseList, type Item } from '../payload/accept.js';
import { mediaTypeOf } from '../payload/bytes.js';
import { typeOfExtension } from './media-types.js';

/** A header with a list. Without it, a client takes anything. */
type Header = string | readonly string[] | undefined;

/** How well an item of a header fits an offer: the higher, the more specific; -1 if it does not fit. */
type Fit = (item: Item, offer: string) => number;

/** The media types (or extensions) among the offers that a client takes, the best first; without offers, its list. */
export function preferTypes(accept: Header, offers: readonly string[]): string[] {
  if (!accept && offers.length > 0) return [...offers];
  const items = itemsIn(accept ?? '*/*').filter(({ name }) => name.includes('/'));
  const types = offers.map((offer) => (offer.includes('/') ? offer : (typeOfExtension(offer) ?? '')));
  return prefer(items, types, fitType).map((type) => offers[types.indexOf(type)] ?? type);
}

/** The content codings among the offers that a client takes, the best first; without offers, its list. */
export function preferEncodings(header: Header, offers: readonly string[]): string[] {
  const items = itemsIn(header ?? '');
  // A client that does not name it takes the unchanged body as the last resort.
  if (!items.some((item) => fitToken(item, 'identity') >= 0)) {
    const quality = Math.min(1, ...items.map((item) => item.quality || 1));
    items.push({ name: 'identity', given: 'identity', parameters: new Map(), quality });
  }
  return prefer(items, offers, fitToken);
}

/** The charsets among the offers that a client takes, the best first; without offers, its list. */
export function preferCharsets(header: Header, offers: readonly string[]): string[] {
  return prefer(itemsIn(header ?? '*'), offers, fitToken);
}

/** The languages among the offers that a client takes, the best first; without offers, its list. */
export function preferLanguages(header: Header, offers: readonly string[]): string[] {
  return prefer(itemsIn(header ?? '*'), offers, fitLanguage);
}

/** The items of a header. Unlike for Postern's own decisions, `q=.5` is a quality (negotiator). */
function itemsIn(header: NonNullable<Header>): Item[] {
  return [...parseList(String(header))]
    .filter(({ name }) => name !== '')
    .map((item) => ({ ...item, quality: parseFloat(item.parameters.get('q') || '1') }));
}

/**
 * The offers that some item fits, by its quality, then how specific it is, then the order of header and offers; without
 * offers, the items by their quality.
 */
function prefer(items: readonly Item[], offers: readonly string[], fit: Fit): string[] {
  const wanted = items.filter(({ quality }) => quality > 0);
  if (offers.length === 0) return wanted.sort((a, b) => b.quality - a.quality).map(({ given }) => given);
  const matches = offers.map((offer) => {
    let best = { fit: -1, quality: 0, order: -1 };
    for (const [order, item] of items.entries()) {
      const match = { fit: fit(item, offer), quality: item.quality, order };
      const isBetter = match.fit > best.fit || (match.fit === best.fit && match.quality >= best.quality);
      if (isBetter && match.fit >= 0) best = match;
    }
    return { offer, ...best };
  });
  const taken = matches.filter(({ quality }) => quality > 0);
  taken.sort((a, b) => b.quality - a.quality || b.fit - a.fit || a.order - b.order);
  return taken.map(({ offer }) => offer);
}

function fitType({ name, parameters }: Item, offer: string): number {
  const [offered] = parseList(offer);
  if (offered === undefined) return -1;
  const [type, subtype] = name.split('/');
  const [offeredType, offeredSubtype] = offered.name.split('/');
  if ((type !== '*' && type !== offeredType) || (subtype !== '*' && subtype !== offeredSubtype)) return -1;
  const wanted = [...parameters].filter(([parameter]) => parameter !== 'q');
  const hasAll = wanted.every(([parameter, value]) => {
    const own = offered.parameters.get(parameter) ?? '';
    return value === '*' || value.toLowerCase() === own.toLowerCase();
  });
  if (!hasAll) return -1;
  return (type === offeredType ? 4 : 0) + (subtype === offeredSubtype ? 2 : 0) + (wanted.length > 0 ? 1 : 0);
}

function fitToken({ name }: Item, offer: string): number {
  return name === offer.toLowerCase() ? 1 : name === '*' ? 0 : -1;
}

function fitLanguage({ name }: Item, offer: string): number {
  const full = offer.toLowerCase();
  if (name === full) return 4;
  if (name.split('-')[0] === full) return 2;
  if (name === full.split('-')[0]) return 1;
  return name === '*' ? 0 : -1;
}

/**
 * The first of several types that the body of a request has: extensions, media types with wildcards, `urlencoded`,
 * `multipart`, `+json`. Without types the type itself; false if none fits, null without a body.
 */
export function typeOfBody(headers: IncomingHttpHeaders, types: readonly string[]): string | false | null {
  const { 'content-type': header, 'content-length': length, 'transfer-encoding': coding } = headers;
  if (coding === undefined && (length === undefined || Number.isNaN(Number(length)))) return null;
  const actual = mediaTypeOf(header);
  if (!/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(actual)) return false;
  if (types.length === 0) return actual;
  const found = types.find((type) => isOfType(actual, type));
  if (found === undefined) return false;
  return found.startsWith('+') || found.includes('*') ? actual : found;
}

function isOfType(actual: string, wanted: string): boolean {
  let pattern: string | undefined = wanted;
  if (wanted === 'urlencoded') pattern = 'application/x-www-form-urlencoded';
  else if (wanted === 'multipart') pattern = 'multipart/*';
  else if (wanted.startsWith('+')) pattern = `*/*${wanted}`;
  else if (!wanted.includes('/')) pattern = typeOfExtension(wanted);
  const [type, subtype = '', ...more] = pattern?.split('/') ?? [];
  const [actualType, actualSubtype = ''] = actual.split('/');
  if (type === undefined || more.length > 0 || (type !== '*' && type !== actualType)) return false;
  if (subtype.startsWith('*+')) return actualSubtype.endsWith(subtype.slice(1));
  return subtype === '*' || subtype === actualSubtype;
}

/** A weak entity tag of a body, as Express makes it. */
export function entityTag(body: string | Uint8Array): string {
  const hash = builtin('node:crypto').createHash('sha1').update(body).digest('base64').slice(0, 27);
  return `W/"${Buffer.byteLength(body).toString(16)}-${hash}"`;
}

/** Whether a client has the version that a response is about to send. */
export function isFresh({ method = '', headers }: IncomingMessage, res: ServerResponse): boolean {
  const { statusCode: status } = res;
  if (!/^(?:GET|HEAD|QUERY)$/.test(method) || !((status >= 200 && status < 300) || status === 304)) return false;
  const { 'if-none-match': noneMatch, 'if-modified-since': modifiedSince } = headers;
  // A client that loads a page anew sends `no-cache`.
  const isForced = /(?:^|,)\s*no-cache\s*(?:,|$)/.test(headers['cache-control'] ?? '');
  if (isForced || (!noneMatch && !modifiedSince)) return false;
  if (noneMatch) {
    const withoutWeak = (tag: unknown): string => String(tag).trim().replace(/^W\//, '');
    const own = res.getHeader('etag');
    return noneMatch === '*' || (!!own && noneMatch.split(',').some((tag) => withoutWeak(tag) === withoutWeak(own)));
  }
  return Date.parse(String(res.getHeader('last-modified'))) <= Date.parse(String(modifiedSince));
}

/** One part of a body; both ends belong to it. */
export interface Range {
  start: number;
  end: number;
}

/** The parts of a body, with their unit. */
export type Ranges = Range[] & { type: string };

/**
 * The parts that a header `range` asks for of a body of some length; -1 if it has none of them, -2 if the header is
 * malformed.
 */
export function parseRange(size: number, header: string, combine: boolean): Ranges | -1 | -2 {
  const equals = header.indexOf('=');
  if (equals === -1) return -2;
  const ranges: Range[] = [];
  for (const part of header.slice(equals + 1).split(',')) {
    const [first, last] = part.split(/-(.*)/s, 2).map((text) => text.trim());
    if (first === undefined || last === undefined) return -2;
    const position = (text: string): number => (/^\d+$/.test(text) ? Number(text) : NaN);
    const start = first === '' ? size - position(last) : position(first);
    const end = first === '' || last === '' ? size - 1 : Math.min(position(last), size - 1);
    if (Number.isNaN(start) || Number.isNaN(end)) return -2;
    if (start <= end && start >= 0) ranges.push({ start, end });
  }
  if (ranges.length === 0) return -1;
  return Object.assign(combine ? combined(ranges) : ranges, { type: header.slice(0, equals) });
}

/** Joins parts that overlap or touch; a joined part has the place of its first. */
function combined(ranges: readonly Range[]): Range[] {
  const joined: (Range & { index: number })[] = [];
  const byStart = ranges.map((range, index) => ({ ...range, index })).sort((a, b) => a.start - b.start);
  for (const range of byStart) {
    const before = joined.at(-1);
    if (before === undefined || range.start > before.end + 1) joined.push(range);
    else if (range.end > before.end)
      Object.assign(before, { end: range.end, index: Math.min(before.index, range.index) });
  }
  return joined.sort((a, b) => a.index - b.index).map(({ start, end }) => ({ start, end }));
}
