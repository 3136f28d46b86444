/* `postern errors`: the error codes of an application, or whether the codes of several services agree. */

import { findClashes, type NamedValue } from '../base/error-codes.js';
import { FrameworkErrorCodes } from '../base/errors.js';
import { isRecord } from '../base/options-check.js';
import { defineCommand, FindingError, flag, reportFindings, savedBy, type Command } from './command.js';
import { loadApp, type LoadedApp } from './module.js';
import { toJson, toTable } from './output.js';

const usage = `Usage: postern errors MODULE [--json]
       postern errors --check FILE... [--json]

Prints every error code of the application that MODULE exports as its default:
the codes of its option errorCodes, and the codes that its routes declare.

  --json           as JSON, to be saved for --check; with --check, its findings
  --check FILE...  compares the saved codes of several services

One value with two names, or one name with two values, exits with 1. So does a
name or a value of the framework's own codes.
`;

const OPTIONS = { json: flag, check: flag };

const operandOf = ({ check }: { readonly check?: unknown }): string => (check === true ? 'FILE...' : 'MODULE');

export const errors: Command = defineCommand(usage, operandOf, OPTIONS, async ({ json, check }, ...files) => {
  if (!check) {
    const rows = catalogueOf(await loadApp(files[0]));
    return { text: json ? toJson(rows) : formatCodes(rows) };
  }
  const read = savedBy('errors MODULE --json', 'saved list of error codes', areCodes);
  const clashes = clashesOf(files.flatMap((owner) => read(owner).map((code) => ({ ...code, owner }))));
  return json ? { text: toJson({ clashes }), finding: clashes.length > 0 } : reportFindings(clashes);
});

/** One row of the catalogue. */
interface CodeRow extends NamedValue {
  /** Null where no declared type has the code. */
  readonly status: number | null;
  readonly description: string | null;
  /** Routes that declare it: `GET /users/:id`. */
  readonly routes: readonly string[];
}

/** Codes of the option `errorCodes`, then codes that only routes declare. @throws {FindingError} for a clash */
function catalogueOf({ name: service, errorCodes = [], router }: LoadedApp): CodeRow[] {
  const declared = (router.entries ?? []).flatMap(({ method, path, options }) =>
    (options?.errors ?? []).map((type) => ({ type, route: `${method} ${path}` })),
  );
  const given = [...errorCodes, ...declared.map(({ type }) => type.errorCode)];
  const codes = new Map(given.map((code) => [`${code.name} ${code.value}`, code]));
  const [clash] = clashesOf([...codes.values()].map((code) => ({ ...code, owner: service })));
  if (clash !== undefined) throw new FindingError(`${clash}; change one of them`);
  return [...codes.values()]
    .filter(({ value }) => !OWN_CODES.some((own) => own.value === value))
    .map(({ name, value }) => {
      const raised = declared.filter(({ type }) => type.errorCode.value === value);
      const [first] = raised;
      return {
        name,
        value,
        status: first?.type.statusCode ?? null,
        description: first === undefined ? null : (first.type.description ?? first.type.message),
        routes: [...new Set(raised.map(({ route }) => route))],
      };
    });
}

function formatCodes(rows: readonly CodeRow[]): string {
  const cells = rows.map(({ name, value, status, description, routes }) =>
    [value, name, status ?? '-', description ?? '-', routes.join(', ') || '-'].map(String),
  );
  return `${toTable([['VALUE', 'NAME', 'STATUS', 'DESCRIPTION', 'ROUTES'], ...cells]).join('\n')}\n`;
}

const OWN_CODES = Object.values(FrameworkErrorCodes).map((code) => ({ ...code, owner: 'the framework' }));

/** @param codes each with its owner, the file or application that has it */
function clashesOf(codes: readonly (NamedValue & { readonly owner: string })[]): string[] {
  const findings = findClashes([...OWN_CODES, ...codes]).map(([a, b]) => {
    const [what, one, other] = a.value === b.value ? [a.value, a.name, b.name] : [a.name, a.value, b.value];
    return `${what} is ${one} in ${a.owner} and ${other} in ${b.owner}`;
  });
  return [...new Set(findings)];
}

function areCodes(value: unknown): value is NamedValue[] {
  const isCode = (row: unknown): boolean =>
    isRecord(row) && typeof row['name'] === 'string' && typeof row['value'] === 'number';
  return Array.isArray(value) && value.every(isCode);
}
