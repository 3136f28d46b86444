/**
 * What the guide says of deployment is what the command writes, and what Node.js and Prometheus take.
 *
 * @module-tag package
 */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { createProject, runCommand } from '../support/command.js';

const PAGE = readFileSync(fileURLToPath(new URL('../../docs/guides/deployment.md', import.meta.url)), 'utf8');

/** The first block of code in a language behind a heading. */
function blockOf(heading: string, language: string): string {
  const [, block = ''] = new RegExp(`^## ${heading}$.*?^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(PAGE) ?? [];
  expect(block, `${language} behind ${heading}`).not.toBe('');
  return block;
}

/** The first column of the table under a header. */
function columnOf(header: string): string[] {
  const [, rows = ''] = new RegExp(`^\\| ${header} \\|.*\\n\\| ---.*\\n((?:\\|.*\\n)+)`, 'm').exec(PAGE) ?? [];
  return [...rows.matchAll(/^\| `?(\w+)`? \|/gm)].map(([, name = '']) => name);
}

async function write(command: 'k8s' | 'alerts', ...args: string[]): Promise<{ cwd: string; text: string }> {
  const cwd = createProject({
    'app.mjs': "import { Postern } from 'postern';\nexport default new Postern('users');\n",
  });
  const { code, stdout } = await runCommand([command, 'app.mjs', ...args], { cwd });
  expect(code).toBe(0);
  return { cwd, text: stdout };
}

test('the Dockerfile has a stage to build in, a user who is not root, and a command that is the process itself', () => {
  const stages = blockOf('A container', 'dockerfile').split(/^(?=FROM )/m);
  expect(stages).toHaveLength(2);
  const [build = '', image = ''] = stages;
  expect(build).toMatch(/^RUN npm ci$/m);
  expect(image).not.toMatch(/^RUN|npm/m);
  expect(image).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m);
  const [, command = ''] = /^CMD (\[.*\])$/m.exec(image) ?? [];
  const [program, ...args] = JSON.parse(command) as string[];
  expect([program, args.at(-1)]).toEqual(['node', 'dist/main.js']);
  expect(execFileSync(process.execPath, [...args.slice(0, -1), '--version'], { encoding: 'utf8' }).trim())
    .toBe(process.version);
});

test(
  'Prometheus takes the scrape configuration with the rules that the command writes',
  { tags: ['prometheus'] },
  async () => {
    const { cwd, text } = await write('alerts');
    writeFileSync(join(cwd, 'users.rules.yml'), text);
    writeFileSync(join(cwd, 'prometheus.yml'), blockOf('Prometheus', 'yaml'));
    expect(execFileSync('promtool', ['check', 'config', 'prometheus.yml'], { cwd, encoding: 'utf8' }))
      .toContain('SUCCESS: 8 rules found');
  },
);

test('the table of alerts names the rules, and the table of manifests the manifests, in their order', async () => {
  const { groups } = parse((await write('alerts')).text) as { groups: { rules: { alert: string }[] }[] };
  expect(columnOf('alert')).toEqual(groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)));
  const manifests = parseAllDocuments((await write('k8s', '--image', 'users')).text)
    .map((document) => (document.toJS() as { kind: string }).kind);
  expect(columnOf('manifest')).toEqual(manifests);
});
