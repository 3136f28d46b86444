/** Runs the built command as often as the parent process asks, one run after the other: most of a process is its start. */

const { exit } = process;
process.on('disconnect', () => exit());
// A run leaves its listeners to the end of its process.
for (const emitter of [process, process.stdout, process.stderr]) emitter.setMaxListeners(0);

let runs = 0;
process.on('message', async ({ command, args, cwd, env }) => {
  const printed = { stdout: '', stderr: '' };
  for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
    process[name].write = (/** @type {unknown} */ chunk, /** @type {unknown[]} */ ...more) => {
      printed[name] += chunk;
      const done = more.at(-1);
      if (typeof done === 'function') done();
      return true;
    };
  }
  process.chdir(cwd);
  process.env = env;
  process.argv = [process.execPath, command, ...args];
  const code = await new Promise((resolve, reject) => {
    process.exit = /** @type {typeof exit} */ (resolve);
    // A module is run once for each URL.
    import(`file://${command}?run=${(runs += 1)}`).catch(reject);
  });
  process.send?.({ code, ...printed });
});
