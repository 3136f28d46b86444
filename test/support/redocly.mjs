// @ts-nocheck: to check this one configuration would take the compiler a fifth of its time for all tests.

/** Lints OpenAPI documents, with Redocly. */

import { createConfig, lintFromString } from '@redocly/openapi-core';

/**
 * @param {string} source a document
 * @returns {Promise<string[]>} what is wrong with it
 */
export async function lint(source) {
  const config = await createConfig({
    rules: {
      'struct': 'error',
      'no-unresolved-refs': 'error',
      'operation-operationId-unique': 'error',
      'path-parameters-defined': 'error',
      'no-identical-paths': 'error',
    },
  });
  return (await lintFromString({ source, config })).map(({ message }) => message);
}
