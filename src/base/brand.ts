/*
 * Recognises what another copy of Postern made: two versions in one `node_modules`, or a bundled one. The classes of
 * each copy are classes of their own, so they carry a brand under a symbol that all copies share.
 *
 * A brand says of what kind a value is meant to be, and nothing of its fields: those are checked before they are used.
 */

const BRAND = Symbol.for('postern.brand');

/** Maximum prototypes to look at: no class of ours has more, and the chain of a Proxy may be endless. */
const MAX_CHAIN = 32;

/** Gives a class, or one object, its brand. */
export function setBrand(target: object, brand: string): void {
  Object.defineProperty(target, BRAND, { value: brand });
}

/** Whether an object has that brand itself, rather than from its prototype. */
export function hasBrand(target: object, brand: string): boolean {
  return Object.getOwnPropertyDescriptor(target, BRAND)?.value === brand;
}

/** Whether a value is an instance of a class of this copy: `instanceof` without the class's `Symbol.hasInstance`. */
export function isOwnInstance(type: object, value: unknown): boolean {
  return Function.prototype[Symbol.hasInstance].call(type as () => void, value);
}

/** Whether a value is an instance of a class, or of the class with its brand in another copy. */
export function isInstance(type: { readonly prototype: object }, value: unknown): boolean {
  if (isOwnInstance(type, value)) return true;
  const brand: unknown = Object.getOwnPropertyDescriptor(type.prototype, BRAND)?.value;
  return typeof brand === 'string' && isBranded(value, brand);
}

/** Whether a value has any brand, its own or an inherited one: a quick first test. @throws whatever a proxy throws */
export function isBrandedAtAll(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Reflect.get(value, BRAND) !== undefined;
}

/** Whether a value has a brand from one of its prototypes. @throws whatever a proxy throws */
export function isBranded(value: unknown, brand: string): boolean {
  if (!isBrandedAtAll(value)) return false;
  let prototype: unknown = Object.getPrototypeOf(value);
  for (let i = 0; typeof prototype === 'object' && prototype !== null && i < MAX_CHAIN; i += 1) {
    if (hasBrand(prototype, brand)) return true;
    prototype = Object.getPrototypeOf(prototype);
  }
  return false;
}
