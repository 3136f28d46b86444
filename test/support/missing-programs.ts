/** Reports, at the end of a run, which programs are missing, what to install, and how many tests were left out. */

import type { Reporter, TestModule } from 'vitest/node';
import { findPrograms } from './programs.mjs';

export class MissingPrograms implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')]);
    for (const { tag, missing } of findPrograms()) {
      const count = skipped.filter((test) => test.tags.includes(tag)).length;
      if (missing.length === 0 || count === 0) continue;
      const programs = missing.map(({ program }) => program).join(', ');
      const packages = [...new Set(missing.map(({ debianPackage }) => debianPackage))].join(' ');
      console.log(`${count} tests left out: ${programs} missing; on Debian, as root: apt-get install ${packages}`);
    }
  }
}
