/* The parameters of a matched path, as an object. */

/** Parameters of one matched path, percent-decoded; the object has no `Object.prototype` behind it. */
export type Params = Readonly<Record<string, string>>;

/** Names come from route authors, values from clients: neither may meet `Object.prototype`. @internal */
export class ParamValues {
  [name: string]: string;
}
Reflect.deleteProperty(ParamValues.prototype, 'constructor');
Object.setPrototypeOf(ParamValues.prototype, null);

/** @internal */
export const NO_PARAMS: Params = Object.freeze(new ParamValues());
