// An older Node.js runs no TypeScript: it finds no test, and calls that a success.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(`This is Node.js ${process.versions.node}; the service needs 22.18 or later. Install it, then try again.`);
  process.exit(1);
}
