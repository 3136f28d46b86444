/* Settings of an application for its OpenAPI document, for every place that creates it. */

import { assertOptions, converted, isRecord, listOf, OBJECT } from '../base/options-check.js';
import type { Kinds, OptionTable } from '../base/options-check.js';

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
  readonly info?: object | undefined;
  /** Servers of the API, each `{ url }`; the option `servers` of `toOpenApi` overrides them. */
  readonly servers?: readonly object[] | undefined;
  /** Descriptions of tags. */
  readonly tags?: readonly object[] | undefined;
  /** Security requirements of every operation. */
  readonly security?: readonly object[] | undefined;
  /** Security schemes and the like. */
  readonly components?: object | undefined;
}

const EXTRAS: Kinds<OpenApiExtras> = {
  info: OBJECT,
  servers: listOf(hasText('url'), 'a list of objects, such as [{ url: "https://api.example" }]'),
  tags: listOf(hasText('name'), 'a list of objects, such as [{ name: "users" }]'),
  security: listOf(isRecord, 'a list of objects, such as [{ bearer: [] }]'),
  components: OBJECT,
};

function hasText(name: string): (value: unknown) => boolean {
  return (value) => isRecord(value) && typeof value[name] === 'string';
}

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
