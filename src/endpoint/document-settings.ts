/* Settings of an application for its OpenAPI document, for every place that creates it. */

import { assertOptions, converted, LIST, OBJECT, type Kinds, type OptionTable } from '../base/options-check.js';

/** The OpenAPI document of an application. */
export interface DocumentOptions {
  /** Merged into the OpenAPI document of the application, wherever it is created. Default: nothing. */
  openapi?: OpenApiExtras | undefined;
}

/** @internal */
export const DOCUMENT = { openapi: converted(OBJECT, checkExtras) } satisfies OptionTable<DocumentOptions>;

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

const EXTRAS: Kinds<OpenApiExtras> = {
  info: OBJECT,
  servers: LIST,
  tags: LIST,
  security: LIST,
  components: OBJECT,
};

function checkExtras(given: OpenApiExtras = {}): OpenApiExtras {
  assertOptions('openapi', given, EXTRAS);
  return given;
}

/** @internal */
export interface OpenApiSettings {
  readonly extras: OpenApiExtras;
  /** The side of a `response` schema that is sent. */
  readonly sent: 'input' | 'output';
}

/** The member of an application that has its settings, also of one from another copy of the package. @internal */
export const OPENAPI: unique symbol = Symbol.for('postern.openapi');
