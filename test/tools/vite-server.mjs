/** Runs `main.js` of the folder given as an argument by a development server of Vite, with Postern inlined. */

import { createServer } from 'vite';

const server = await createServer({
  root: process.argv[2],
  configFile: false,
  appType: 'custom',
  server: { middlewareMode: true, ws: false, watch: null },
  ssr: { noExternal: ['postern'] },
});
await server.ssrLoadModule('/main.js');
