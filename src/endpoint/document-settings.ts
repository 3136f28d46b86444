/* Settings of an application for its OpenAPI document, for every place that creates it. */

import { LIST, OBJECT, type Kinds } from '../base/options-check.js';

type Json = Readonly<Record<string, unknown>>;

/** Merged into the document of an application. Objects are merged member by member; anything else is replaced. */
export interface OpenApiExtras {
  /** Description, contact, license and the like. */
  readonly info?: Json | undefined;
  readonly servers?: readonly Json[] | undefined;
  readonly tags?: readonly Json[] | undefined;
  readonly security?: readonly Json[] | undefined;
  /** Security schemes and the like. */
  readonly components?: Json | undefined;
}

/** @internal */
export const EXTRAS: Kinds<OpenApiExtras> = {
  info: OBJECT,
  servers: LIST,
  tags: LIST,
  security: LIST,
  components: OBJECT,
};

/** @internal */
export interface OpenApiSettings {
  readonly extras: OpenApiExtras;
  /** The side of a `response` schema that is sent. */
  readonly sent: 'input' | 'output';
}

/** The member of an application that has its settings, also of one from another copy of the package. @internal */
export const OPENAPI: unique symbol = Symbol.for('postern.openapi');
