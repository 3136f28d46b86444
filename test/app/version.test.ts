/** What the framework says of its version is the package's. */

import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { FRAMEWORK_VERSION } from '../../src/base/version.js';

test('framework_version is the version of the package', () => {
  expect(FRAMEWORK_VERSION).toBe(packageJson.version);
});
