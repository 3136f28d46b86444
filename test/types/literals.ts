/** Types of replies with literals: compiled, never run. What `response` declares needs no `as const`. */

import { z } from 'zod';
import { defineEndpoint, endpoint, Postern, reply, type Reply } from 'postern';

const app = new Postern('x');
const Kind = z.object({ k: z.enum(['a', 'b']) });
const Parts = z.object({ k: z.literal('a'), t: z.tuple([z.string(), z.number()]) });
const Either = z.discriminatedUnion('t', [
  z.object({ t: z.literal('a'), n: z.number() }),
  z.object({ t: z.literal('b'), s: z.string() }),
]);
const Numbered = z.object({ id: z.number() });
const Letter = z.enum(['a', 'b']);
const known: { k: 'a' | 'b' } = { k: 'a' };

app.get('/a1', { response: Kind }, () => ({ k: 'a' }));
app.get('/a2', { response: Kind }, async () => ({ k: 'a' }));
app.get('/a3', { response: Kind }, () => reply({ k: 'a' }));
app.get('/a4', { response: Kind }, async () => reply({ k: 'a' }));
app.get('/a5', { response: { 200: Kind, 201: Kind } }, async () => reply({ k: 'a' }, { status: 201 }));
app.get('/a6', { response: Kind }, async () => known);
app.get('/b1', { response: Parts }, () => ({ k: 'a', t: ['x', 1] }));
app.get('/b2', { response: Parts }, async () => ({ k: 'a', t: ['x', 1] }));
app.get('/b3', { response: Parts }, async () => reply({ k: 'a', t: ['x', 1] }));
app.get('/c1', { response: Either }, () => ({ t: 'a', n: 1 }));
app.get('/c2', { response: Either }, async (ctx) => (ctx.method === 'GET' ? { t: 'a', n: 1 } : { t: 'b', s: 'x' }));
app.get('/c3', { response: z.array(Either) }, async () => [{ t: 'a', n: 1 }, { t: 'b', s: 'x' }]);
app.get('/c4', { response: z.array(Either) }, async () => reply([{ t: 'a', n: 1 }, { t: 'b', s: 'x' }]));
app.get('/e1', { response: Letter }, () => 'a');
app.get('/e2', { response: Letter }, (ctx) => { return ctx.method === 'GET' ? 'a' : 'b'; });
app.get('/e3', { response: { 200: Letter, 204: null } }, () => 'a');
app.get('/e4', { response: z.literal(1) }, () => 1);
app.get('/e5', { response: z.literal(true) }, (_ctx) => true);
app.get('/e6', { response: Letter }, () => reply('a'));
endpoint({ response: Letter }, () => 'a');
endpoint({ response: Kind }, async () => ({ k: 'a' }));
endpoint({ response: Kind }, async () => reply({ k: 'a' }));

const kind = defineEndpoint('GET', '/kind', { response: Kind });
app.implement(kind, () => ({ k: 'a' }));
app.implement(kind, async () => ({ k: 'a' }));
app.implement(defineEndpoint('GET', '/letter', { response: Letter }), () => 'a');
app.implement(kind, async () => reply({ k: 'a' }));
const put = defineEndpoint('PUT', '/put', { response: { 200: Numbered, 201: Numbered } });
app.implement(put, () => reply({ id: 1 }));
app.implement(put, async () => reply({ id: 1 }, { status: 201 }));

export const list: Reply<number[]> = reply([1, 2]);
export const nested: Reply<{ a: string[] }> = reply({ a: ['x'] });

// @ts-expect-error
app.get('/d1', { response: Kind }, () => ({ k: 'c' }));
// @ts-expect-error
app.get('/d2', { response: Kind }, async () => ({ k: 'c' }));
// @ts-expect-error
app.get('/d3', { response: Kind }, () => reply({ k: 'c' }));
// @ts-expect-error
app.get('/d4', { response: Parts }, async () => ({ t: ['x', 1] }));
// @ts-expect-error
app.get('/d5', { response: Parts }, async () => ({ k: 'a', t: ['x'] }));
// @ts-expect-error
app.get('/e7', { response: Letter }, () => 'c');
// @ts-expect-error
app.get('/e8', { response: Letter }, () => '');
// @ts-expect-error
app.get('/e9', { response: Kind }, () => true);
// @ts-expect-error
app.implement(kind, async () => ({ k: 'c' }));
// @ts-expect-error
app.implement(put, async () => reply({ id: 1 }, { status: 202 }));
