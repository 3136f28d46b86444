/** The parameters of a matched path, as an object. */

/** Parameters of one matched path, percent-decoded; the object has no `Object.prototype` behind it. */
export type Params = Readonly<Record<string, string>>;

/** Names come from route authors, values from clients: neither may meet `Object.prototype`. */
export class ParamValues {
  [name: string]: string;
}
Reflect.deleteProperty(ParamValues.prototype, 'constructor');
Object.setPrototypeOf(ParamValues.prototype, null);

export const NO_PARAMS: Params = Object.freeze(new ParamValues());

/** Names of parameters, which are set at places of their own, one after the other. */
export interface ParamNames {
  readonly names: readonly string[];
  readonly place: number;
}

/** The lists of names in one table; equal ones are one. */
export class ParamNameLists {
  readonly #lists = new Map<string, ParamNames>();
  #places = 0;

  obtain(names: readonly string[]): ParamNames {
    const key = names.length === 1 ? (names[0] as string) : names.join('/');
    let list = this.#lists.get(key);
    if (list === undefined) {
      this.#lists.set(key, (list = { names, place: this.#places }));
      this.#places += names.length;
    }
    return list;
  }
}

/**
 * Sets one parameter.
 *
 * For each place in a program that sets a property, V8 remembers which one it was, and is three times as fast as long as it
 * stays the same. So the names of the first few lists get a place each; the rest share the last.
 */
export function setParam(params: ParamValues, place: number, name: string, value: string): void {
  switch (place) {
    case 0: params[name] = value; break;
    case 1: params[name] = value; break;
    case 2: params[name] = value; break;
    case 3: params[name] = value; break;
    case 4: params[name] = value; break;
    case 5: params[name] = value; break;
    case 6: params[name] = value; break;
    default: params[name] = value;
  }
}
