/* The type of what a handler returns, checked for members that JSON loses, as far as types tell. */

import type { AnyFunction } from '../endpoint/public-facing.js';
import type { Stream } from '../payload/bytes.js';
import type { Reply } from './reply.js';

/** A Map or a Set, known by its members: as `Map<K, V>`, it would have to be one of certain keys. */
interface MapOrSet {
  readonly size: number;
  forEach: AnyFunction;
  has: AnyFunction;
}

/** Values that become `{}` in JSON, or nothing at all. */
type Lost = MapOrSet | PromiseLike<unknown> | Iterator<unknown, unknown, never> | PlatformBody | Headers;

type Primitive = string | number | boolean | null | undefined | void;
/** Values that are sent unchanged, but not inside of JSON. */
type PlatformBody = Blob | FormData | URLSearchParams | ArrayBuffer;
/** Values that are sent unchanged, or write their own JSON. */
type Whole = Response | Stream | PlatformBody | ArrayBufferView | { toJSON: AnyFunction };

/** How deep a type is searched: a recursive one has no end. */
type MaxDepth = 4;

/** An object without a name that has the methods of a promise: `{ ...ctx.json() }`. */
type SpreadPromise = Pick<Promise<unknown>, 'then' | 'catch'> & Readonly<Record<string, unknown>>;

/**
 * Resolves to `unknown` for what can be sent, so that `Result & Sendable<Result>` is `Result`.
 *
 * A function counts as lost in an object whose type has no name, `{ send: () => {} }`. In a class or an interface it is
 * a method, which JSON leaves out as it should.
 */
// Sendable<{ a: number }> → unknown; Sendable<{ a: Promise<number> }> → the text
// With `true` in front and a tuple in `IsAnything`, the compiler sees of a generic result that the text cannot result.
export type Sendable<Result> = true extends IsSpread<Result> | LosesWhole<Awaited<Result>>
  ? Result extends SpreadPromise
    ? 'this is the spread of a promise, without its value: await it first, { ...(await ctx.json()) }'
    : 'JSON loses a Map, a Set, a Blob, a bigint, a function or a promise in this: convert it, call it, await it'
  : unknown;

type IsSpread<Result> =
  IsAnything<Result> extends true ? false : Result extends SpreadPromise ? true : false;

type LosesWhole<T> =
  IsAnything<T> extends true
    ? false
    : T extends Reply<infer Body, number>
      ? LosesWhole<Body>
      : T extends Whole
        ? false
        : T extends bigint | symbol | AnyFunction
          ? true
          : Loses<T, []>;

type Loses<T, Depth extends readonly unknown[], Owner = unknown> =
  IsAnything<T> extends true
    ? false
    : T extends AnyFunction
      ? IsNameless<Owner>
      : T extends Primitive | { toJSON: AnyFunction }
        ? false
        : T extends Lost | bigint | symbol
          ? true
          : LosesMember<T, Depth>;

type LosesMember<T, Depth extends readonly unknown[]> = Depth['length'] extends MaxDepth
  ? false
  : T extends readonly (infer Element)[]
    ? Loses<Element, [...Depth, T]>
    : { [Name in keyof T]-?: Loses<T[Name], [...Depth, T], T> }[keyof T];

/** `any` and `unknown` tell nothing of a value. */
type IsAnything<T> = [unknown] extends [T] ? true : false;

/** Only an object type without a name passes for a record. */
type IsNameless<T> = T extends Readonly<Record<string, unknown>> ? true : false;
