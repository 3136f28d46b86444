/** Another realm: a `node:vm` context, whose Object, Error, Promise and Map are not ours. Jest runs code in one, too. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute } from 'node:path';
import { createContext, runInContext, type Context } from 'node:vm';

interface CommonJs {
  exports: unknown;
}

/** Code and packages in a realm of their own, which has the globals of Node.js except for those of Fetch. */
export class Realm {
  readonly #context: Context = createContext({});
  readonly #modules = new Map<string, CommonJs>();

  constructor() {
    const own = new Set(runInContext('Object.getOwnPropertyNames(globalThis)', this.#context) as string[]);
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(globalThis))) {
      if (own.has(name) || /^(?:fetch|Response|Request|Headers)$/.test(name)) continue;
      Object.defineProperty(this.#context, name, descriptor);
    }
  }

  /** Result of an expression. */
  evaluate(code: string): unknown {
    return runInContext(`(${code})`, this.#context);
  }

  /** Loads a CommonJS package of `test/package.json`; the modules of Node.js itself are ours. */
  require(name: string): unknown {
    return this.#load(createRequire(import.meta.url).resolve(name));
  }

  #load(file: string): unknown {
    const known = this.#modules.get(file);
    if (known !== undefined) return known.exports;
    const module: CommonJs = { exports: {} };
    this.#modules.set(file, module);
    const text = readFileSync(file, 'utf8');
    if (file.endsWith('.json')) return (module.exports = JSON.parse(text));
    const outer = createRequire(file);
    const inner = (name: string): unknown => {
      const resolved = outer.resolve(name);
      return isAbsolute(resolved) ? this.#load(resolved) : outer(name);
    };
    const wrapped = `(function (exports, require, module, __filename, __dirname) {${text}\n})`;
    const run = runInContext(wrapped, this.#context, { filename: file }) as (...given: unknown[]) => void;
    run(module.exports, inner, module, file, dirname(file));
    return module.exports;
  }
}
