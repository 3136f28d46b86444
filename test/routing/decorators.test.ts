/**
 * Decorators, as TypeScript compiles them: standard ones, and those of `experimentalDecorators`.
 *
 * @module-tag package
 */

import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { endpoint, publicFacing } from 'postern';
import { createApp } from '../support/serve.js';

const { default: ts } = (await import(
  createRequire(new URL('../package.json', import.meta.url)).resolve('typescript')
)) as { default: typeof import('../node_modules/typescript/lib/typescript.js') };

/** Compiles the code of a class and runs it. */
function evaluate(code: string, experimentalDecorators: boolean): new () => object {
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { experimentalDecorators, target: ts.ScriptTarget.ES2022 },
  });
  return new Function('publicFacing', 'endpoint', `${outputText}\nreturn View;`)(publicFacing, endpoint) as new () =>
    object;
}

describe.each([
  { kind: 'standard', legacy: false },
  { kind: 'experimental', legacy: true },
])('$kind decorators', ({ legacy }) => {
  test('flag methods, bare and called, alone and together', async () => {
    const View = evaluate(
      `class View {
        name = 'view';
        @publicFacing get() { return this.name; }
        @publicFacing() post() { return this.name; }
        @publicFacing({ params: ['q'] }) put() { return this.name; }
        @endpoint({ timeout: 500, public: true }) patch() { return this.name; }
        @publicFacing @endpoint({ meta: { a: 1 } }) delete() { return this.name; }
        @endpoint({}) head() {}
        options() {}
      }`,
      legacy,
    );
    const app = createApp({ attachMonitorEndpoints: false });
    app.view('/x', new View() as { get(): string });
    expect(app.router.routes.map(({ method, public: isOpen, params, meta }) => [method, isOpen, params, meta])).toEqual(
      [
        ['GET', true, null, undefined],
        ['POST', true, null, undefined],
        ['PUT', true, ['q'], undefined],
        ['PATCH', true, null, undefined],
        ['DELETE', true, null, { a: 1 }],
        ['HEAD', false, null, undefined],
        ['OPTIONS', false, null, undefined],
      ],
    );
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
      expect(await (await app.request('/x', { method })).text()).toBe('view');
    expect((await app.request('/x?other=1', { method: 'PUT' })).status).toBe(400);
  });

  test.for([
    '@publicFacing static get() {}',
    '@publicFacing() static get() {}',
    '@endpoint({}) static get() {}',
    '@publicFacing get = () => 1;',
    '@publicFacing() get = 1;',
    '@endpoint({}) get = 1;',
    '@publicFacing get get() { return 1; }',
  ])('%s is a TypeError', (member) => {
    expect(() => evaluate(`class View { ${member} }`, legacy))
      .toThrow(/^(?:publicFacing|endpoint) decorates methods, not a .* \(get\); make it a method of instances$/);
  });

  // TypeScript's own decorators are not allowed there.
  if (!legacy)
    test('a private method is a TypeError', () => {
      expect(() => evaluate('class View { @publicFacing #get() {} }', legacy)).toThrow(/not a private member \(#get\)/);
    });
});
