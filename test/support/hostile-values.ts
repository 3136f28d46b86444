/** Values that do harm when they are looked at, or when nobody awaits them: thrown, or returned in place of others. */

import { NotFound } from 'postern';
import { Realm } from './realm.js';

const fail = (): never => {
  throw new Error('trap');
};

/** A proxy all of whose traps throw. */
export function trapped(target: object): object {
  const traps = Object.getOwnPropertyNames(Reflect).map((name) => [name, fail] as const);
  return new Proxy(target, Object.fromEntries(traps));
}

/** A proxy that shows its target for so many looks, and throws from then on. */
export function trappedAfter(looks: number, target: object): object {
  let left = looks;
  const traps = Object.getOwnPropertyNames(Reflect).map((name) => {
    const look = (...given: unknown[]): unknown => {
      left -= 1;
      if (left < 0) fail();
      return Reflect.apply(Reflect.get(Reflect, name) as () => unknown, Reflect, given);
    };
    return [name, look] as const;
  });
  return new Proxy(target, Object.fromEntries(traps));
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function errorWith(name: string): Error {
  return Object.defineProperty(new Error('hostile'), name, { get: fail });
}

function selfCaused(): Error {
  const error = new AggregateError([], 'hostile');
  error.cause = error;
  error.errors.push(error);
  return error;
}

const realm = new Realm();

type Values = Readonly<Record<string, () => unknown>>;

/** Errors and objects some of whose members throw, but not `stack`, which `destroy` of a Node.js stream reads. */
const ODD: Values = {
  'an Error whose cause throws': () => errorWith('cause'),
  'an Error whose status throws': () => Object.assign(errorWith('status'), { expose: true }),
  'an Error whose expose throws': () => errorWith('expose'),
  'an Error whose toString and toJSON throw':
    () => Object.assign(new Error('hostile'), { toString: fail, toJSON: fail }),
  'an Error that causes itself': selfCaused,
  'an Error of another realm': () => realm.evaluate('new TypeError("hostile")'),
  'a frozen Error': () => Object.freeze(new Error('hostile')),
  'a NotFound whose description throws':
    () => Object.defineProperty(new NotFound('hostile'), 'description', { get: fail }),
  'an object without a prototype': () => Object.create(null) as unknown,
  'an object whose toString throws': () => ({ toString: fail, [Symbol.toPrimitive]: fail }),
  'an object whose tag throws': () => ({ get [Symbol.toStringTag](): never { return fail(); } }),
  'a function': () => fail,
};

/** Values that are promises, or look like one. */
const PROMISES: Values = {
  'an Error whose then throws': () => Object.assign(new Error('hostile'), { then: fail }),
  'an Error whose then throws when it is read': () => errorWith('then'),
  'an object whose then throws': () => ({ then: fail }),
  'an object whose then throws when it is read': () => ({ get then(): never { return fail(); } }),
  'an object whose then rejects':
    () => ({ then: (_resolve: unknown, reject: (error: Error) => void) => reject(new Error('hostile')) }),
  'a promise that rejects': () => Promise.reject(new Error('hostile')),
  'a promise of another realm that rejects': () => realm.evaluate('Promise.reject(new Error("hostile"))'),
};

/** Objects that throw wherever they are looked at, or when their stack is made, which has their name and message. */
const TRAPS: Values = {
  'an Error whose message throws': () => errorWith('message'),
  'an Error whose name throws': () => errorWith('name'),
  'an Error whose message is a symbol': () => Object.assign(new Error(), { message: Symbol('hostile') }),
  'an Error whose stack throws': () => errorWith('stack'),
  'a frozen Error whose stack throws': () => Object.freeze(errorWith('stack')),
  'a proxy that throws at everything': () => trapped({}),
  'a proxy of an Error that throws at everything': () => trapped(new Error('hostile')),
  'a proxy of a function that throws at everything': () => trapped(() => undefined),
  'a revoked proxy': revoked,
};

const FALSY: Values = {
  'undefined': () => undefined, 'null': () => null, 'false': () => false, 'zero': () => 0, 'an empty text': () => '',
};
const PRIMITIVES: Values = {
  'a text': () => 'hostile',
  'a number that is a status': () => 404,
  'a bigint': () => 1n,
  'a symbol': () => Symbol('hostile'),
};

/** A `then` that never calls back. Who throws it is not waited for. */
const ENDLESS: Values = { 'an object whose then never calls back': () => ({ then: () => undefined }) };

/** Values that can be thrown, in groups. */
export const THROWN: Readonly<Record<string, Values>> = {
  'an odd error or object': ODD,
  'a promise, or what looks like one': { ...PROMISES, ...ENDLESS },
  'what throws when it is read': TRAPS,
  'a value that is false': FALSY,
  'another primitive': PRIMITIVES,
};

/** Objects that a handler may return, in groups. A promise that never ends is left out. */
export const RETURNED: Readonly<Record<string, Values>> = {
  'an odd error or object': ODD,
  'a promise, or what looks like one': PROMISES,
  'what throws when it is read': TRAPS,
};
