/**
 * Reads a JSON body by hand, for the contenders that have no parser of their own.
 *
 * @param {import('node:http').IncomingMessage} req
 * @param {(error: Error | null, value?: unknown) => void} done
 */
export function readJson(req, done) {
  /** @type {Buffer[]} */
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('error', done);
  req.on('end', () => {
    let value;
    try {
      value = JSON.parse(Buffer.concat(chunks).toString());
    } catch (error) {
      done(/** @type {Error} */ (error));
      return;
    }
    done(null, value);
  });
}
