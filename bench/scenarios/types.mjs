/**
 * What 200 endpoints with zod cost the compiler: instantiations of types and seconds, by hand and as options of routes.
 * Instantiations are counted, not timed, so that the machine decides nothing.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const COUNT = 200;
const ROOT = resolve(import.meta.dirname, '../..');

/** By name, the code of one endpoint. */
const KINDS = {
  'by hand': (i) => `app.post('/users${i}/:id', async (ctx): Promise<z.input<typeof User${i}>> => {
  const params = Id${i}.safeParse(ctx.params);
  const query = Query${i}.safeParse({ page: ctx.query.get('page') ?? undefined, tag: ctx.query.getAll('tag') });
  if (!params.success) throw new BadRequest(params.error.issues[0]?.message);
  if (!query.success) throw new BadRequest(query.error.issues[0]?.message);
  const body = Body${i}.safeParse(await ctx.json());
  if (!body.success) throw new BadRequest(body.error.issues[0]?.message);
  return { id: params.data.id + (query.data.page ?? ''), name: body.data.name, age: body.data.age${i} };
});`,
  'as options': (i) => `app.post('/users${i}/:id', {
  params: Id${i}, query: Query${i}, body: Body${i}, response: User${i},
}, (_ctx, { params, query, body }) => {
  return { id: params.id + (query.page ?? ''), name: body.name, age: body.age${i} };
});`,
};

/** Of one endpoint; each has schemas of its own. */
const schemas = (i) => `const Id${i} = z.object({ id: z.string() });
const Query${i} = z.object({ page: z.string().optional(), tag: z.array(z.string()).optional() });
const Body${i} = z.object({ name: z.string(), age${i}: z.number(), tags: z.array(z.string()) });
const User${i} = z.object({ id: z.string(), name: z.string(), age: z.number() });`;

/** @returns {Promise<object>} the figures, for --json */
export async function types() {
  const folder = mkdtempSync(join(tmpdir(), 'postern-types-'));
  try {
    mkdirSync(join(folder, 'node_modules/@types'), { recursive: true });
    symlinkSync(ROOT, join(folder, 'node_modules/postern'));
    symlinkSync(join(ROOT, 'bench/node_modules/zod'), join(folder, 'node_modules/zod'));
    symlinkSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
    const results = Object.fromEntries(
      Object.entries(KINDS).map(([name, endpoint]) => [name, measure(folder, name, endpoint)]),
    );
    const ratio = results['as options'].instantiations / results['by hand'].instantiations;
    console.log(`\ntypes of ${COUNT} endpoints with zod`);
    for (const [name, { instantiations, seconds }] of Object.entries(results))
      console.log(`  ${name.padEnd(12)} ${instantiations} instantiations, ${seconds} s`);
    console.log(`  as options / by hand: ${ratio.toFixed(2)}`);
    return { ...results, ratio };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function measure(folder, name, endpoint) {
  const lines = Array.from({ length: COUNT }, (_, i) => `${schemas(i)}\n${endpoint(i)}`);
  const file = join(folder, `${name.replace(' ', '-')}.mts`);
  writeFileSync(
    file,
    `import { z } from 'zod';\nimport { BadRequest, Postern } from 'postern';\nvoid BadRequest;\nconst app = new Postern('users');\n${lines.join('\n')}\n`,
  );
  const project = `${file}.json`;
  writeFileSync(
    project,
    JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        target: 'ES2022',
        module: 'NodeNext',
        types: ['node'],
        lib: ['ES2023', 'ESNext.Disposable'],
      },
      files: [file],
    }),
  );
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const report = execFileSync(process.execPath, [tsc, '-p', project, '--singleThreaded', '--extendedDiagnostics'], {
    encoding: 'utf8',
  });
  const figure = (label) => Number(new RegExp(`^${label}:\\s+([\\d.]+)`, 'm').exec(report)?.[1]);
  return { instantiations: figure('Instantiations'), seconds: figure('Check time') };
}
