/** Loaded before the service: on SIGUSR2, opens files until the process has no file descriptor left. */

const { openSync } = require('node:fs');

let times = 0;
process.on('SIGUSR2', () => {
  try {
    for (;;) openSync('/dev/null');
  } catch (error) {
    console.log(`${error.code} ${(times += 1)}`);
  }
});
