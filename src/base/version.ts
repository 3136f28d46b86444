/** The framework's own version, reported as `framework_version` (SPEC 9.2); a test holds it equal to the package's. */
export const FRAMEWORK_VERSION = '1.0.0';
