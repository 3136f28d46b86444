/* Settings of an application for its OpenAPI document, for every place that creates it. */

import { LIST, OBJECT, type Kinds } from '../base/options-check.js';

/** Merged into the document of an application. Objects are merged member by member; anything else is replaced. */
export interface OpenApiExtras {
  /** Description, contact, license and the like. */
  readonly info?: Readonly<Record<string, unknown>> | undefined;
  /** Servers of the API; the option `servers` of `toOpenApi` overrides them. */
  readonly servers?: readonly Readonly<Record<string, unknown>>[] | undefined;
  /** Descriptions of tags. */
  readonly tags?: readonly Readonly<Record<string, unknown>>[] | undefined;
  /** Security requirements of every operation. */
  readonly security?: readonly Readonly<Record<string, unknown>>[] | undefined;
  /** Security schemes and the like. */
  readonly components?: Readonly<Record<string, unknown>> | undefined;
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
