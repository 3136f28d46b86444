/* Views: classes whose methods are the handlers of one path. */

import { VERBS } from './endpoint.js';
import { isRecord, show } from '../base/options-check.js';
import type { Context, HandlerResult } from '../answer/context.js';

/** A method of a view: a handler of one HTTP method. */
export type ViewMethod<P> = (ctx: Context<P>, input: never) => HandlerResult | Promise<HandlerResult>;

/** A class of handlers, one for each method that it serves. */
export interface View<P> {
  /** Answers GET, and HEAD without a `head`. */
  get?: ViewMethod<P> | undefined;
  /** Answers POST. */
  post?: ViewMethod<P> | undefined;
  /** Answers PUT. */
  put?: ViewMethod<P> | undefined;
  /** Answers PATCH. */
  patch?: ViewMethod<P> | undefined;
  /** Answers DELETE. */
  delete?: ViewMethod<P> | undefined;
  /** Answers HEAD. */
  head?: ViewMethod<P> | undefined;
  /** Answers OPTIONS. Default: 204 with `Allow`. */
  options?: ViewMethod<P> | undefined;
}

/**
 * Names the methods that a view serves.
 *
 * @throws {TypeError} if it has none, for a member of that name that is not a method, and for a flag that would have no
 * effect
 */
export function methodsOf(path: string, view: object): readonly (keyof View<never>)[] {
  if (!isRecord(view)) throw new TypeError(`view of ${show(path)} is ${show(view)}; give a class or an instance of one`);
  const refuse = (name: string, why: string, remedy = `flag methods named ${VERBS.join(', ')}`): never => {
    throw new TypeError(`${name} of the view of ${show(path)} ${why}; ${remedy}`);
  };
  for (const [name, value] of membersOf(view, Object.prototype)) {
    if (value === undefined || name === 'constructor') continue;
    const isVerb = (VERBS as readonly string[]).includes(name);
    if (isVerb && typeof value !== 'function') refuse(name, `is ${show(value)}, not a method`, 'rename it');
    if (!isVerb && isFlagged(value)) refuse(name, 'is flagged, and not an HTTP method');
  }
  // A module, `import * as users`, has no constructor.
  const statics = typeof view.constructor === 'function' ? membersOf(view.constructor, Function.prototype) : [];
  for (const [name, value] of statics) if (isFlagged(value)) refuse(name, 'is flagged, and static');
  const names = VERBS.filter((name) => typeof (view as View<never>)[name] === 'function');
  if (names.length === 0) throw new TypeError(`view of ${show(path)} has no method; give it ${VERBS.join(', ')}`);
  return names;
}

/** Own and inherited members, before the members of `end`; the value of an accessor, which is not called, is undefined. */
function* membersOf(object: object, end: object): Generator<[name: string, value: unknown]> {
  for (let owner: object | null = object; owner !== null && owner !== end; owner = Reflect.getPrototypeOf(owner)) {
    for (const key of Reflect.ownKeys(owner)) yield [String(key), Reflect.getOwnPropertyDescriptor(owner, key)?.value];
  }
}

/** Whether a value was flagged by `publicFacing`, or carries options. */
function isFlagged(value: unknown): boolean {
  return typeof value === 'function' && (('scope' in value && value.scope === 'public') || 'routeOptions' in value);
}
