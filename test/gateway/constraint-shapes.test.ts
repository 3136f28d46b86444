/** Constraints of every shape: what a gateway is told of a path lets in only what the constraint matches. */

import { describe, expect, test } from 'vitest';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { Router } from '../../src/routing/router.js';
import { compilePathPattern } from '../../src/gateway/path-pattern.js';
import type { Dialect } from '../../src/gateway/constraint-pattern.js';
import { GatewayError } from '../../src/gateway.js';
import { NORMALIZED, SENT, SENT_UNGUARDED } from '../../src/gateway/spelling.js';
import { createSurface } from '../../src/gateway/surface.js';
import { normalizeForKong } from '../support/gateway-model.js';

const DIALECTS: readonly (Dialect & { readonly seen: (path: string) => string })[] = [
  { gateway: 'nginx', spelling: SENT, pcre: true, seen: (path) => path },
  { gateway: 'HAProxy', spelling: SENT, pcre: true, unroll: true, seen: (path) => path },
  { gateway: 'Caddy', spelling: SENT, seen: (path) => path },
  { gateway: 'Kong', spelling: NORMALIZED, seen: (path) => Buffer.from(normalizeForKong(path), 'latin1').toString() },
  { gateway: 'the Gateway API', spelling: SENT_UNGUARDED, seen: (path) => path },
];

/** Sets whose characters are sent as themselves, as escapes, as either, and as several bytes. */
const SETS = ['a', '\\w', '[ \\t]', '[?#]', '[@+]', '[\\w.+@-]', '[^a]', '[à-ü]', '[éa]', '[ a]', '\\s', '@', ' '];
const QUANTIFIERS = ['', '+', '*', '?', '{2}', '{1,2}', '{2,}'];
const FRAMES = ['X', '\\w+X', 'X\\w+', '\\w+X\\w+', '(?:Xb)+', '(?:X|b)', 'X|b', 'b|X', '(X)', 'XX', '(?:X|b)+c', 'a(?:b|X)*'];
const CONSTRAINTS = SETS.flatMap((set) =>
  QUANTIFIERS.flatMap((quantifier) => FRAMES.map((frame) => frame.replaceAll('X', set + quantifier))),
);

const ATOMS = ['a', 'b', '%20', '%09', '@', '%40', '%2B', '%2b', '+', '%3F', '%C3%A9', '%C3%BC', '%2Bb', 'c'];
const VALUES = ATOMS.flatMap((a) => [a, ...ATOMS.flatMap((b) => [a + b, ...['a', 'b', '%20', 'c'].map((c) => a + b + c)])]);
const PATHS = VALUES.flatMap((value) => [`/who/${value}`, `/x/${value}`, `/who/${value}/x`, `/x/who/${value}`]);

describe.each(DIALECTS)('$gateway', (dialect) => {
  test('matches no path that the router does not match', () => {
    const wrong: string[] = [];
    let [told, matched] = [0, 0];
    for (const constraint of CONSTRAINTS) {
      const router = new Router();
      try {
        router.add('GET', `/who/:name(${constraint})`, publicFacing(() => 1));
      } catch {
        continue; // it may backtrack without a bound
      }
      const [leaf] = createSurface(router, new Map()).leaves;
      try {
        const { within, around } = compilePathPattern(leaf!, dialect)!;
        const [opens, closes] = [within, around].map((pattern) => new RegExp(pattern.replaceAll('\\z', '$'), 's'));
        told += 1;
        for (const path of PATHS) {
          // Of a control character, Kong has a route of its own, which refuses it.
          if (dialect.gateway === 'Kong' && path.includes('%09')) continue;
          const seen = dialect.seen(path);
          const [opened, closed] = [opens!.test(seen), closes!.test(seen)];
          if (!opened && !closed && path.includes('x')) continue;
          const match = router.match('GET', path) !== null;
          matched += Number(match);
          if ((opened && !match) || (match && !closed)) wrong.push(`${constraint}: ${path}, ${within}`);
        }
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
      }
    }
    expect(wrong.slice(0, 10)).toEqual([]);
    expect(told).toBeGreaterThan(400);
    expect(matched).toBeGreaterThan(10_000);
  });
});
